"""After a few hundred small updates a model answers, and chooses, by what it sees."""

import pytest
import torch

from saccade.data.shapes import ShapesSettings
from saccade.models.joint.config import VilbertConfig
from saccade.tasks.base import Preparation
from saccade.tasks.joint import data as joint_data
from saccade.tasks.joint.answering import Answering, AnsweringSettings
from saccade.tasks.joint.batch import Sees
from saccade.tasks.joint.choosing import Choosing, ChoosingSettings
from saccade.train.devices.distributed import World
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
    steps=170, learning_rate=1e-2, optimizer="muon", warmup=10, schedule="cosine"
)


def answers(sees: Sees) -> Answering:
    settings = AnsweringSettings(
        image=32, scenes=600, texts=6, sees=sees, shapes=ShapesSettings(most=1)
    )
    return Answering(settings, Preparation(budget=96, seed=0))


def choices(sees: Sees) -> Choosing:
    settings = ChoosingSettings(
        image=32, scenes=600, texts=2, sees=sees, shapes=ShapesSettings(most=1)
    )
    return Choosing(settings, Preparation(budget=32, seed=0))


def accuracy(task: Answering | Choosing) -> float:
    """On held-out scenes, after training."""
    torch.manual_seed(0)
    trainer = Trainer(task.fit(SMALL).build(), task, SETTINGS, World(0, 1, CPU))
    for _ in range(SETTINGS.steps):
        trainer.advance()
    trainer.settle()
    return task.validate(trainer.model.eval(), CPU)["accuracy"]


@pytest.mark.slow
def test_who_sees_the_image_answers_better_than_who_hears_the_question_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_data, "HELD_BACK", 200)
    both, question = accuracy(answers("both")), accuracy(answers("question"))
    assert both > question + 0.04
    assert question > 0.3  # yes or no, and which answers there are


@pytest.mark.slow
def test_who_sees_the_image_chooses_the_right_sentence_and_who_does_not_can_only_guess(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_data, "HELD_BACK", 200)
    assert accuracy(choices("both")) > 0.4
    assert accuracy(choices("question")) == pytest.approx(0.25, abs=0.05)
