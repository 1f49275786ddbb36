"""Recipes that read images and texts together."""

from dataclasses import replace

from saccade.data.shapes import ShapesSettings
from saccade.models.joint import clip, vilbert
from saccade.tasks.joint.answering import AnsweringSettings
from saccade.tasks.joint.choosing import ChoosingSettings
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.tasks.joint.referring import ReferringSettings
from saccade.tasks.matching.data import MatchingSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

_NANO, _SMALL = vilbert.PRESETS["vilbert-nano"], vilbert.PRESETS["vilbert-small"]
_ON_SHAPES = TrainSettings(
    steps=2000,
    batch_tokens=256,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=50,
    weight_decay=0.1,
    validate_every=250,
)
_SEVERAL = ShapesSettings(fewest=2)  # of a single object many scenes have the same to say
_ON_PHOTOS = TrainSettings(
    batch_tokens=512,
    optimizer="muon",
    learning_rate=3e-4,
    encoder_rate=0.5,
    schedule="cosine",
    warmup=300,
    weight_decay=0.1,
    ema=0.998,
    validate_every=400,
    precision="bfloat16",
)


def _vilbert(about: str, task: JointPretrainingSettings | FittingSettings, *, steps: int) -> Recipe:
    train = replace(_ON_PHOTOS, steps=steps)
    return Recipe(
        about=about, system="S24", lecture="ViLBERT", model=_SMALL, task=task, train=train
    )


MEASURED: dict[str, Recipe] = {
    "vilbert-photos": _vilbert(
        "ViLBERT pre-trained on photographs with captions",
        JointPretrainingSettings(image=224, texts=2, augment="crop"),
        steps=2000,
    ),
    "vilbert-retrieval-photos": _vilbert(
        "ViLBERT finds photographs by sentences, and sentences by photographs",
        FittingSettings(image=224, texts=2, augment="crop"),
        steps=800,  # of thousands of photographs; further ones are learnt by heart
    ),
    "clip-photos": Recipe(
        about="CLIP compares photographs with texts: zero-shot classes, and search both ways",
        system="S25",
        lecture="DALL·E",
        model=clip.PRESETS["clip-small"],
        task=MatchingSettings(image=224, augment="crop"),
        train=replace(_ON_PHOTOS, steps=4000),
    ),
}
BUILT_IN: dict[str, Recipe] = {
    "vilbert": Recipe(
        about="words and regions in two streams, pre-trained on captions",
        system="S24",
        lecture="ViLBERT",
        model=_NANO,
        task=JointPretrainingSettings(shapes=_SEVERAL, scenes=10_000, texts=2),
        train=_ON_SHAPES,
    ),
    "vilbert-questions": Recipe(
        about="ViLBERT answers questions about images",
        system="S24",
        lecture="ViLBERT",
        model=_NANO,
        task=AnsweringSettings(texts=8, scenes=10_000),
        train=_ON_SHAPES,
    ),
    "vilbert-retrieval": Recipe(
        about="ViLBERT finds images by sentences, and sentences by images",
        system="S24",
        lecture="ViLBERT",
        model=_NANO,
        task=FittingSettings(shapes=_SEVERAL, scenes=10_000, texts=2),
        train=replace(_ON_SHAPES, steps=1200),
    ),
    "vilbert-referring": Recipe(
        about="ViLBERT tells which part of an image a phrase means",
        system="S24",
        lecture="ViLBERT",
        model=_NANO,
        task=ReferringSettings(texts=8, scenes=10_000),
        train=replace(_ON_SHAPES, steps=1200),
    ),
    "vilbert-choices": Recipe(
        about="ViLBERT tells which of several sentences fits an image",
        system="S24",
        lecture="ViLBERT",
        model=_NANO,
        task=ChoosingSettings(texts=2, scenes=10_000),
        train=replace(_ON_SHAPES, batch_tokens=64),
    ),
    "clip": Recipe(
        about="CLIP: two encoders whose vectors are alike where text and image belong together",
        system="S25",
        lecture="DALL·E",
        model=clip.PRESETS["clip-nano"],
        task=MatchingSettings(shapes=_SEVERAL, scenes=20_000),
        train=replace(_ON_SHAPES, steps=700),
    ),
}
