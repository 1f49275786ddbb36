"""Recipes for text encoders that learn from text alone; others start from their runs."""

from saccade.models import preset
from saccade.tasks.masked.task import MaskedSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

# These learn the built-in data on two cores in minutes.
BUILT_IN: dict[str, Recipe] = {
    "bert": Recipe(
        about="bidirectional Transformer that fills hidden words",
        system="S9",
        lecture="Pre-training and fine-tuning",
        model=preset("bert-nano"),
        task=MaskedSettings(vocabulary=2000),
        train=TrainSettings(
            steps=3000,
            batch_tokens=4096,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "electra": Recipe(
        about="a discriminator that tells which words a generator replaced",
        system="S9",
        lecture="Pre-training and fine-tuning",
        model=preset("electra-nano"),
        task=MaskedSettings(vocabulary=2000),
        train=TrainSettings(
            steps=2000,
            batch_tokens=4096,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
}
