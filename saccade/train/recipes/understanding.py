"""Recipes that understand texts: from nothing, or better from a run of `bert` or of others."""

from dataclasses import replace

from saccade.data.lingua import LinguaSettings
from saccade.models import preset
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

# Many short sentences: of fewer or longer ones a small model learns the labels by heart.
_LINGUA = UnderstandingSettings(vocabulary=2000, count=60_000, lingua=LinguaSettings(longest=16))
_ON_LINGUA = TrainSettings(
    steps=5000,
    batch_tokens=2048,
    batches="mixed",
    learning_rate=1e-3,
    schedule="linear",
    warmup_share=0.1,
    validate_every=500,
)
_LECTURE = "Pre-training and fine-tuning"

# These learn the built-in data on two cores in minutes; with `--init runs/bert` from few labels.
BUILT_IN: dict[str, Recipe] = {
    "bert-classify": Recipe(
        about="BERT that tells whether a sentence is acceptable",
        system="S9",
        lecture=_LECTURE,
        model=preset("bert-nano"),
        task=_LINGUA,
        train=_ON_LINGUA,
    ),
    "bert-pairs": Recipe(
        about="BERT that tells whether one sentence entails or contradicts another",
        system="S9",
        lecture=_LECTURE,
        model=preset("bert-nano"),
        task=replace(_LINGUA, world="entails"),
        train=_ON_LINGUA,
    ),
    "bert-tag": Recipe(
        about="BERT that tells the part of speech of every word",
        system="S9",
        lecture=_LECTURE,
        model=preset("bert-nano"),
        task=replace(_LINGUA, world="tags", count=5000),
        train=replace(_ON_LINGUA, steps=600, validate_every=200),
    ),
}
# With the settings that BERT was fine-tuned with (Devlin et al. 2019): they need --data and --init.
MEASURED: dict[str, Recipe] = {
    "bert-glue": Recipe(
        about="BERT fine-tuned on a task of GLUE, or on texts and labels of your own",
        system="S9",
        lecture=_LECTURE,
        model=preset("bert-base"),
        task=UnderstandingSettings(vocabulary=30_522),
        train=TrainSettings(
            steps=100_000,
            epochs=3.0,
            batch_tokens=1024,  # some 32 sentences
            batches="mixed",
            learning_rate=3e-5,
            schedule="linear",
            warmup_share=0.1,
            beta2=0.999,
            weight_decay=0.01,
            validate_every=0,
            precision="bfloat16",
        ),
    ),
}
