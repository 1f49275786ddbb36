"""Recipes for images: captioners."""

from dataclasses import replace

from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.tasks.captioning.data import CaptioningSettings, HardSettings
from saccade.tasks.captioning.equalizer import EqualizerSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

_SHAPES = TrainSettings(
    steps=3200,
    batch_tokens=1024,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=200,
    ema=0.99,
    validate_every=800,
)
# Another caption in each epoch: an image more teaches more than a caption more.
_SCENES = CaptioningSettings(captions=1, scenes=60_000)
# Reading the last word before looking halves the updates needed; see docs/captioning.md.
_LOOKS_AT_SHAPES = ShowAttendTellConfig(
    encoder="resnet-mini", dropout=0.1, reads_first=True, places=True
)

_PHOTOS = CaptioningSettings(image=224, vocabulary=3000, augment="flip", label_smoothing=0.1)
_ON_PHOTOS = TrainSettings(
    steps=1400,
    batch_tokens=4096,
    learning_rate=1e-3,
    encoder_rate=0.1,
    schedule="cosine",
    warmup=100,
    ema=0.995,
    validate_every=200,
    precision="bfloat16",
)
_LOOKS_AT_PHOTOS = ShowAttendTellConfig(
    encoder="mobilenet-v2", stage=0, width=512, hidden=512, dropout=0.5
)

# These learn the built-in shapes on two cores in minutes.
BUILT_IN: dict[str, Recipe] = {
    "show-and-tell": Recipe(
        about="CNN to RNN through one vector: the bottleneck",
        system="S10",
        lecture="Image captioning with RNNs",
        model=ShowAndTellConfig(
            encoder="resnet-mini", stage=3, width=256, dropout=0.0, shown="always"
        ),
        task=_SCENES,
        train=_SHAPES,
    ),
    "show-attend-tell": Recipe(
        about="RNN captioner that looks at the image before each word",
        system="S11",
        lecture="Image captioning with RNNs and attention",
        model=_LOOKS_AT_SHAPES,
        task=_SCENES,
        train=_SHAPES,
    ),
    "show-attend-tell-hard": Recipe(
        about="the same, looking at one place at a time, learnt by trial (REINFORCE)",
        system="S12",
        lecture="Hard attention",
        model=replace(_LOOKS_AT_SHAPES, glance="hard"),
        task=replace(_SCENES, hard=HardSettings(entropy=0.0)),
        train=_SHAPES,
    ),
    "cnn-transformer": Recipe(
        about="CNN features, Transformer encoder and decoder",
        system="S13",
        lecture="Image captioning with Transformers",
        model=CaptionTransformerConfig(
            encoder="resnet-mini",
            stage=3,
            width=128,
            depth=3,
            encoder_depth=1,
            heads=4,
            hidden=512,
            dropout=0.0,
        ),
        task=_SCENES,
        train=_SHAPES,
    ),
    "vit-captioner": Recipe(
        about="patches to words, Transformers only",
        system="S14",
        lecture="Image captioning with only Transformers",
        model=CaptionTransformerConfig(
            encoder="vit-nano",
            width=96,
            depth=2,
            encoder_depth=0,
            heads=4,
            hidden=256,
            dropout=0.0,
        ),
        task=_SCENES,
        train=replace(_SHAPES, steps=3600, validate_every=900),
    ),
    "equalizer": Recipe(
        about="right for the right reasons: against a biased world, with the Equalizer's losses",
        system="S15",
        lecture="Attention shows what a caption is right for",
        model=ShowAttendTellConfig(encoder="resnet-mini", width=128, hidden=128, dropout=0.1),
        task=CaptioningSettings(
            world="biased",
            scenes=3000,
            captions=2,
            equalizer=EqualizerSettings(confusion=10.0, confident=1.0, masked=1.0),
        ),
        train=replace(
            _SHAPES,
            steps=1500,
            optimizer="adamw",
            learning_rate=1e-3,
            warmup=50,
            validate_every=250,
        ),
    ),
}
# These hold the settings that were measured on photographs (docs/results.md), and need --data.
MEASURED: dict[str, Recipe] = {
    "show-and-tell-photos": Recipe(
        about="Show and Tell for some thousand photographs",
        system="S10",
        lecture="Image captioning with RNNs",
        model=ShowAndTellConfig(encoder="mobilenet-v2", width=512, dropout=0.5, shown="always"),
        task=_PHOTOS,
        train=_ON_PHOTOS,
    ),
    "show-attend-tell-photos": Recipe(
        about="Show, Attend and Tell for some thousand photographs",
        system="S11",
        lecture="Image captioning with RNNs and attention",
        model=_LOOKS_AT_PHOTOS,
        task=replace(_PHOTOS, cover=1.0),
        train=_ON_PHOTOS,
    ),
    "show-attend-tell-hard-photos": Recipe(
        about="the same with single glances",
        system="S12",
        lecture="Hard attention",
        model=replace(_LOOKS_AT_PHOTOS, glance="hard"),
        task=replace(_PHOTOS, label_smoothing=0.0),
        train=_ON_PHOTOS,
    ),
    "cnn-transformer-photos": Recipe(
        about="CNN and Transformer for some thousand photographs",
        system="S13",
        lecture="Image captioning with Transformers",
        model=CaptionTransformerConfig(
            encoder="mobilenet-v2",
            width=512,
            depth=3,
            encoder_depth=1,
            heads=8,
            hidden=1024,
            dropout=0.3,
        ),
        task=_PHOTOS,
        train=replace(_ON_PHOTOS, learning_rate=5e-4),
    ),
    "vit-captioner-photos": Recipe(
        about="patches to words for some thousand photographs",
        system="S14",
        lecture="Image captioning with only Transformers",
        model=CaptionTransformerConfig(
            encoder="vit-ti-16",
            width=192,
            depth=3,
            encoder_depth=0,
            heads=3,
            hidden=768,
            dropout=0.2,
        ),
        task=_PHOTOS,
        train=replace(_ON_PHOTOS, optimizer="muon", encoder_rate=1.0),
    ),
}
