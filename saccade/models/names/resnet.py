"""What others call the parts of a ResNet; torchvision's names, which timm has too, are ours."""

from saccade.models.names.table import Names

LAYERS = (1, 2, 3)  # of a block; a basic one has two
OWN: Names = {
    name: name
    for name in (
        *("conv1", "bn1", "fc"),
        *(f"layer{{i}}.{{j}}.{part}{layer}" for part in ("conv", "bn") for layer in LAYERS),
        *(f"layer{{i}}.{{j}}.downsample.{part}" for part in (0, 1)),
    )
}
_BLOCK = "resnet.encoder.stages.{i-1}.layers.{j}"
HUGGING_FACE: Names = {
    "conv1": "resnet.embedder.embedder.convolution",
    "bn1": "resnet.embedder.embedder.normalization",
    **{f"layer{{i}}.{{j}}.conv{n}": f"{_BLOCK}.layer.{n - 1}.convolution" for n in LAYERS},
    **{f"layer{{i}}.{{j}}.bn{n}": f"{_BLOCK}.layer.{n - 1}.normalization" for n in LAYERS},
    "layer{i}.{j}.downsample.0": f"{_BLOCK}.shortcut.convolution",
    "layer{i}.{j}.downsample.1": f"{_BLOCK}.shortcut.normalization",
    "fc": "classifier.1",
}
LIBRARIES: dict[str, Names] = {"timm": OWN, "torchvision": OWN, "huggingface": HUGGING_FACE}
