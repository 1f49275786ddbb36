"""What others call the parts of a ConvNeXt."""

from saccade.models.names.table import Names


def _names(
    stem: tuple[str, str], between: str, block: str, parts: dict[str, str], end: tuple[str, str]
) -> Names:
    return {
        "parts.0.merge.0": stem[0],
        "parts.0.merge.1": stem[1],
        "parts.{i}.merge.0": f"{between}.0",
        "parts.{i}.merge.1": f"{between}.1",
        **{f"parts.{{i}}.blocks.{{j}}.{ours}": f"{block}.{part}" for ours, part in parts.items()},
        "norm": end[0],
        "head": end[1],
    }


OFFICIAL = _names(
    ("downsample_layers.0.0", "downsample_layers.0.1"),
    "downsample_layers.{i}",
    "stages.{i}.{j}",
    {
        "around": "dwconv",
        "norm": "norm",
        "mlp.widen": "pwconv1",
        "mlp.narrow": "pwconv2",
        "scale": "gamma",
    },
    ("norm", "head"),
)
TIMM = _names(
    ("stem.0", "stem.1"),
    "stages.{i}.downsample",
    "stages.{i}.blocks.{j}",
    {
        "around": "conv_dw",
        "norm": "norm",
        "mlp.widen": "mlp.fc1",
        "mlp.narrow": "mlp.fc2",
        "scale": "gamma",
    },
    ("head.norm", "head.fc"),
)
TORCHVISION = _names(
    ("features.0.0", "features.0.1"),
    "features.{2i}",
    "features.{2i+1}.{j}",
    {
        "around": "block.0",
        "norm": "block.2",
        "mlp.widen": "block.3",
        "mlp.narrow": "block.5",
        "scale": "layer_scale as column",
    },
    ("classifier.0", "classifier.2"),
)
HUGGING_FACE = _names(
    ("convnext.embeddings.patch_embeddings", "convnext.embeddings.layernorm"),
    "convnext.encoder.stages.{i}.downsampling_layer",
    "convnext.encoder.stages.{i}.layers.{j}",
    {
        "around": "dwconv",
        "norm": "layernorm",
        "mlp.widen": "pwconv1",
        "mlp.narrow": "pwconv2",
        "scale": "layer_scale_parameter",
    },
    ("convnext.layernorm", "classifier"),
)
LIBRARIES: dict[str, Names] = {
    "timm": TIMM,
    "official": OFFICIAL,
    "torchvision": TORCHVISION,
    "huggingface": HUGGING_FACE,
}
