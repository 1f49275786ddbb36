"""Recipes that tell images by codes."""

from saccade.models.image_tokens import dvae
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

MEASURED: dict[str, Recipe] = {
    "dvae-photos": Recipe(
        about="photographs as 16 × 16 codes of 2,048, and back",
        system="S25",
        lecture="DALL·E",
        model=dvae.PRESETS["dvae-128"],
        task=ReconstructionSettings(image=128, augment="crop", beta_batches=0, cool_batches=20_000),
        train=TrainSettings(
            steps=25_000,
            batch_tokens=128,
            learning_rate=3e-4,
            schedule="cosine",
            warmup=500,
            beta2=0.999,
            weight_decay=1e-4,
            ema=0.999,
            validate_every=1000,
            precision="bfloat16",
        ),
    ),
}
BUILT_IN: dict[str, Recipe] = {
    "dvae": Recipe(
        about="images as 8 × 8 codes of 512, and back",
        system="S25",
        lecture="DALL·E",
        model=dvae.PRESETS["dvae-nano"],
        # The KL weighs from the start: without it the first few codes that serve take all cells.
        task=ReconstructionSettings(beta_batches=0, cool_batches=4500),
        train=TrainSettings(
            steps=6000,
            batch_tokens=32,
            learning_rate=3e-3,
            schedule="cosine",
            warmup=50,
            beta2=0.999,
            weight_decay=1e-4,
            validate_every=1000,
        ),
    ),
}
