"""Recipes that tell images apart."""

from dataclasses import replace

from saccade.models.vision import attention_resnet, convnext, mobilenet, mvit, resnet, swin, vit
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.classification.vary import VarySettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

# What an object is does not depend on which way round it stands, nor on where.
_SHAPES = ClassificationSettings(scenes=60_000, vary=VarySettings(flip=True, crop="shift"))
_ON_SHAPES = TrainSettings(
    steps=5400,
    batch_tokens=64,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=100,
    weight_decay=0.3,
    ema=0.99,
    validate_every=600,
)
_SOON = replace(_ON_SHAPES, steps=2400, validate_every=400)  # convolutions know what is near

# As Lee et al. 2021 (arXiv:2112.13492) vary images of 32 pixels.
_SMALL_PHOTOS = ClassificationSettings(
    image=32,
    label_smoothing=0.1,
    vary=VarySettings(
        crop="shift",
        flip=True,
        policy="auto",
        erase=0.25,
        erased=0.4,
        mixup=1.0,
        cutmix=1.0,
        mixed=0.5,
    ),
)
# 300 passes over 47,500 images: what "100 epochs" are where each image is seen three times in one.
_ON_SMALL_PHOTOS = TrainSettings(
    steps=27_900,
    batch_tokens=512,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=500,
    weight_decay=1.0,
    ema=0.999,
    validate_every=2790,
    precision="bfloat16",
)
# Weights before a BatchNorm have no length of their own: decay only makes their steps longer.
_CONVOLUTIONS = replace(
    _ON_SMALL_PHOTOS, steps=9300, validate_every=930, learning_rate=5e-3, weight_decay=0.05
)

BUILT_IN: dict[str, Recipe] = {
    "attention-resnet": Recipe(
        about="a ResNet with a block of self-attention",
        system="S16",
        lecture="CNN with self-attention",
        model=attention_resnet.PRESETS["attention-resnet-nano"],
        task=_SHAPES,
        train=_SOON,
    ),
    "resnet": Recipe(
        about="a residual network, the baseline without attention",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=resnet.PRESETS["resnet-mini"],
        task=_SHAPES,
        train=_SOON,
    ),
    "mobilenet": Recipe(
        about="MobileNetV2, small and without attention",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=mobilenet.PRESETS["mobilenet-nano"],
        task=_SHAPES,
        train=_ON_SHAPES,
    ),
    "vit": Recipe(
        about="Vision Transformer: patches are words",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=vit.PRESETS["vit-nano"],
        task=_SHAPES,
        train=_ON_SHAPES,
    ),
    "hybrid": Recipe(
        about="a ViT that reads the cells of a ResNet",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=vit.PRESETS["hybrid-nano"],
        task=_SHAPES,
        train=_SOON,
    ),
    "deit3": Recipe(
        about="DeiT III: a ViT with layer scale, and its way to train",
        system="S18",
        lecture="DeiT III",
        model=replace(
            vit.PRESETS["vit-nano"], layer_scale=0.5, class_position=False, drop_path=0.02
        ),
        task=_SHAPES,
        train=replace(_ON_SHAPES, steps=7200),
    ),
    "sl-vit": Recipe(
        about="ViT for few images: shifted patches and local self-attention",
        system="S19",
        lecture="ViT for small data sets",
        model=replace(vit.PRESETS["vit-nano"], reads="shifted", local=True),
        task=_SHAPES,
        train=_ON_SHAPES,
    ),
    "swin": Recipe(
        about="Swin: attention within shifted windows",
        system="S20",
        lecture="Swin Transformer",
        model=swin.PRESETS["swin-nano"],
        task=_SHAPES,
        train=replace(_ON_SHAPES, steps=3600),
    ),
    "mvit": Recipe(
        about="MViTv2: attention that pools what it looks at",
        system="S21",
        lecture="Multiscale Vision Transformers",
        model=mvit.PRESETS["mvit-nano"],
        task=_SHAPES,
        train=_SOON,
    ),
    "convnext": Recipe(
        about="ConvNeXt: a CNN with the manners of a Transformer",
        system="S22",
        lecture="ConvNeXt",
        model=convnext.PRESETS["convnext-nano"],
        task=_SHAPES,
        train=replace(_ON_SHAPES, steps=4800),
    ),
}

# With the settings that were measured on photographs (docs/results.md); they need --data.
MEASURED: dict[str, Recipe] = {
    "vit-32": Recipe(
        about="a ViT for small photographs of 32 pixels",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=replace(vit.PRESETS["vit-small-data"], classes=10, drop_path=0.0),
        task=_SMALL_PHOTOS,
        train=_ON_SMALL_PHOTOS,
    ),
    "sl-vit-32": Recipe(
        about="a ViT for few photographs of 32 pixels: shifted patches, local self-attention",
        system="S19",
        lecture="ViT for small data sets",
        model=replace(vit.PRESETS["sl-vit"], classes=10, drop_path=0.0),
        task=_SMALL_PHOTOS,
        train=_ON_SMALL_PHOTOS,
    ),
    "resnet-32": Recipe(
        about="a ResNet-18 for small photographs of 32 pixels",
        system="S17",
        lecture="Vision Transformer (ViT) against ResNets",
        model=replace(resnet.PRESETS["resnet-18-small"], classes=10),
        task=_SMALL_PHOTOS,
        train=_CONVOLUTIONS,
    ),
    "swin-32": Recipe(
        about="a Swin for small photographs of 32 pixels",
        system="S20",
        lecture="Swin Transformer",
        model=replace(swin.PRESETS["swin-32"], classes=10),
        task=_SMALL_PHOTOS,
        train=_ON_SMALL_PHOTOS,
    ),
    "sl-swin-32": Recipe(
        about="a Swin for few photographs of 32 pixels, with the same",
        system="S19",
        lecture="ViT for small data sets",
        model=replace(swin.PRESETS["sl-swin-32"], classes=10),
        task=_SMALL_PHOTOS,
        train=_ON_SMALL_PHOTOS,
    ),
    "convnext-32": Recipe(
        about="a ConvNeXt for small photographs of 32 pixels",
        system="S22",
        lecture="ConvNeXt",
        model=replace(convnext.PRESETS["convnext-32"], classes=10),
        task=_SMALL_PHOTOS,
        train=_ON_SMALL_PHOTOS,
    ),
}
