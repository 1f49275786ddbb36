"""Recipes that tell images by codes, and that draw them from texts."""

from dataclasses import replace

from saccade.data.shapes import ShapesSettings
from saccade.models.image_tokens import dalle, dvae
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.train.recipe import Recipe, Stage
from saccade.train.settings import TrainSettings

_SAME = ("data", "image", "fit", "skip_bad", "scenes", "shapes")  # of both stages

_DVAE_PHOTOS = Recipe(
    about="photographs as 16 × 16 codes of 2,048, and back",
    system="S25",
    lecture="DALL·E",
    model=dvae.PRESETS["dvae-128"],
    task=ReconstructionSettings(
        image=128, augment="crop", beta=1.0, beta_batches=0, cool_batches=2250
    ),
    train=TrainSettings(
        steps=3000,
        batch_tokens=128,
        learning_rate=3e-4,
        schedule="cosine",
        warmup=300,
        beta2=0.999,
        weight_decay=1e-4,
        ema=0.999,
        validate_every=1000,
        precision="bfloat16",
    ),
)
_DVAE = Recipe(
    about="images as 16 × 16 codes of 128, and back",
    system="S25",
    lecture="DALL·E",
    model=dvae.PRESETS["dvae-mini"],
    # The KL weighs from the start: without it the first few codes that serve take all cells. A cell
    # has a quarter of the pixels that it has in the paper, so β is less.
    task=ReconstructionSettings(beta=0.3, beta_batches=0, cool_batches=3000),
    train=TrainSettings(
        steps=4000,
        batch_tokens=128,
        optimizer="muon",  # nearly as good after a ninth of the images as AdamW: docs/generation.md
        learning_rate=3e-3,
        schedule="cosine",
        warmup=50,
        beta2=0.999,
        weight_decay=1e-4,
        validate_every=1000,
        precision="bfloat16",
    ),
)
_DALLE_PHOTOS = Recipe(
    about="photographs from texts, after a discrete VAE of them",
    system="S25",
    lecture="DALL·E",
    # A few thousand photographs are known by heart after nine epochs.
    model=replace(dalle.PRESETS["dalle-small"], dropout=0.2),
    task=TextToImageSettings(image=128, level="bpe", vocabulary=8000, bpe_dropout=0.1),
    train=TrainSettings(
        steps=600,
        batch_tokens=128,
        optimizer="muon",
        learning_rate=1e-3,
        schedule="cosine",
        warmup=60,
        weight_decay=0.1,
        ema=0.99,
        validate_every=100,
        precision="bfloat16",
    ),
    stages=(Stage(option="dvae", recipe=_DVAE_PHOTOS, shared=_SAME),),
)
_DALLE = Recipe(
    about="images from texts: shapes and what is said of them, after a discrete VAE",
    system="S25",
    lecture="DALL·E",
    model=dalle.PRESETS["dalle-mini"],
    # Of 20,000 scenes it knows the training set by heart after six epochs.
    task=TextToImageSettings(shapes=ShapesSettings(most=2), scenes=150_000),
    train=replace(
        _DVAE.train,
        steps=10_000,
        learning_rate=1.5e-3,
        weight_decay=0.1,
    ),
    stages=(Stage(option="dvae", recipe=_DVAE, shared=_SAME),),
)
MEASURED: dict[str, Recipe] = {"dvae-photos": _DVAE_PHOTOS, "dalle-photos": _DALLE_PHOTOS}
BUILT_IN: dict[str, Recipe] = {"dvae": _DVAE, "dalle": _DALLE}
