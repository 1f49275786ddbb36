"""After a few hundred small updates a model answers by what it sees."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
import torch

from saccade.models.joint.config import VilbertConfig
from saccade.tasks.base import Preparation, silent
from saccade.tasks.joint import data as joint_data
from saccade.tasks.joint.answering import Answering, AnsweringSettings, read_questions
from saccade.train.distributed import World
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings

CPU = torch.device("cpu")
SMALL = VilbertConfig(
    width=48,
    depth=2,
    heads=4,
    hidden=96,
    longest=40,
    region_width=48,
    region_depth=1,
    region_heads=4,
    region_hidden=96,
    joins=1,
    join_width=48,
    join_heads=4,
    dropout=0.0,
    encoder="resnet-mini",
    stage=1,
    regions="boxes",
)
SETTINGS = TrainSettings(
    steps=200, learning_rate=1e-2, optimizer="muon", warmup=10, schedule="cosine"
)


def by_question_alone(settings: AnsweringSettings) -> float:
    """Right, if one says what was said most often to the same question, else most often at all."""
    read = [read_questions(settings, split, silent) for split in ("train", "valid")]
    train, valid = (
        list(zip((text for some in one.texts for text in some), one.truth, strict=True))
        for one in read
    )
    said, every = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for text, truth in train:
        said[text].update(truth.answers)
        every.update(truth.answers)
    guesses = [said.get(text, every).most_common(1)[0][0] for text, _ in valid]
    return sum(guess in truth.answers for guess, (_, truth) in zip(guesses, valid)) / len(valid)


@pytest.mark.slow
def test_who_sees_the_image_answers_better_than_one_can_by_the_question_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_data, "HELD_BACK", 60)
    settings = AnsweringSettings(image=32, scenes=600, texts=6)
    task = Answering(settings, Preparation(budget=96, seed=0))
    torch.manual_seed(0)
    trainer = Trainer(task.fit(SMALL).build(), task, SETTINGS, World(0, 1, CPU))
    for _ in range(SETTINGS.steps):
        trainer.advance()
    trainer.settle()
    found = task.validate(trainer.model.eval(), CPU)["accuracy"]
    guessed = by_question_alone(settings)
    assert 0.2 < guessed < found - 0.05
    blind = Answering(replace(settings, sees="question"), Preparation(budget=96, seed=0))
    assert blind.validate(trainer.model, CPU)["accuracy"] < found - 0.1
