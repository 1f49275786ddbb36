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
        task=ReconstructionSettings(
            image=128, augment="crop", beta=1.0, beta_batches=2000, cool_batches=20_000
        ),
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
        task=ReconstructionSettings(beta=1.0, beta_batches=500, cool_batches=2000),
        train=TrainSettings(
            steps=3000,
            batch_tokens=32,
            optimizer="muon",
            learning_rate=2e-3,
            schedule="cosine",
            warmup=50,
            weight_decay=1e-4,
            validate_every=500,
        ),
    ),
}
