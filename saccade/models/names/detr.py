"""What others call the parts of a DETR: its authors, and Hugging Face in files and in memory.

The image encoder has Hugging Face's own names or timm's, which are torchvision's and ours. Its
BatchNorm is frozen there and does not count batches.
"""

from saccade.models.names import resnet
from saccade.models.names.table import Names

LAYERS = (0, 1, 2)  # of the MLP that gives a box


def _table(backbone: Names, encoder: str, decoder: str, inside: Names, outside: Names) -> Names:
    """What is `inside` a block has the same names in both stacks, where both have it."""
    return {
        **{f"image_encoder.encoder.{ours}": theirs for ours, theirs in backbone.items()},
        **{f"encoder.{{i}}.{ours}": encoder + theirs for ours, theirs in inside.items()},
        **{f"decoder.{{i}}.{ours}": decoder + theirs for ours, theirs in inside.items()},
        **outside,
    }


def _hugging_face(backbone: Names, output: str, mlp: str) -> Names:
    inside = {
        **{
            f"{ours}.to_{one}": f"{theirs}.{name}"
            for ours, theirs in {
                "self_attention": "self_attn",
                "cross_attention": "encoder_attn",
            }.items()
            for one, name in {**{x: f"{x}_proj" for x in "qkv"}, "output": output}.items()
        },
        "around_attention.norm": "self_attn_layer_norm",
        "around_self.norm": "self_attn_layer_norm",
        "around_cross.norm": "encoder_attn_layer_norm",
        "mlp.widen": f"{mlp}fc1",
        "mlp.narrow": f"{mlp}fc2",
        "around_mlp.norm": "final_layer_norm",
    }
    outside = {
        "image_encoder.project": "model.input_projection",
        "decoder_norm": "model.decoder.layernorm",
        "queries": "model.query_position_embeddings",
        "to_scores": "class_labels_classifier",
        **{f"to_boxes.layers.{n}": f"bbox_predictor.layers.{n}" for n in LAYERS},
    }
    layers = ("model.encoder.layers.{i}.", "model.decoder.layers.{i}.")
    return _table(backbone, *layers, inside, outside)


def _within(path: str, names: Names) -> Names:
    return {ours: path + theirs.removeprefix("resnet.") for ours, theirs in names.items()}


def _of_torch(ours: str, theirs: str) -> Names:
    """Torch's own attention: in_proj_weight, with no dot."""
    joint = {f"{ours}.to_{x}": f"{theirs}.in_proj_*[{n}/3]" for n, x in enumerate("qkv")}
    return {**joint, f"{ours}.to_output": f"{theirs}.out_proj"}


OFFICIAL = _table(
    _within("backbone.0.body.", resnet.OWN),
    "transformer.encoder.layers.{i}.",
    "transformer.decoder.layers.{i}.",
    {
        **_of_torch("self_attention", "self_attn"),
        **_of_torch("cross_attention", "multihead_attn"),
        "around_attention.norm": "norm1",
        "around_self.norm": "norm1",
        "around_cross.norm": "norm2",
        "mlp.widen": "linear1",
        "mlp.narrow": "linear2",
    },
    {
        "encoder.{i}.around_mlp.norm": "transformer.encoder.layers.{i}.norm2",
        "decoder.{i}.around_mlp.norm": "transformer.decoder.layers.{i}.norm3",
        "image_encoder.project": "input_proj",
        "decoder_norm": "transformer.decoder.norm",
        "queries": "query_embed",
        "to_scores": "class_embed",
        **{f"to_boxes.layers.{n}": f"bbox_embed.layers.{n}" for n in LAYERS},
    },
)
_FILE, _MEMORY = "model.backbone.conv_encoder.model.", "model.backbone.model."
LIBRARIES: dict[str, Names] = {
    "huggingface": _hugging_face(_within(_FILE, resnet.HUGGING_FACE), "out_proj", ""),
    "huggingface-timm": _hugging_face(_within(_FILE, resnet.OWN), "out_proj", ""),
    "huggingface-5": _hugging_face(_within(_MEMORY, resnet.HUGGING_FACE), "o_proj", "mlp."),
    "huggingface-5-timm": _hugging_face(_within(_MEMORY, resnet.OWN), "o_proj", "mlp."),
    "official": OFFICIAL,
}
HEAD = ("to_scores", "proposals.to_scores")
# Where a query is a box, what is learnt of it is no place, and boxes are mended, not given.
OF_PLAIN = ("queries", "to_boxes")
