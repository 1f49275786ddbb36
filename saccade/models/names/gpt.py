"""What Hugging Face calls the parts of a GPT-2, whose matrices lie on their sides there."""

from jaxtyping import Float
from torch import Tensor

from saccade.models.names.table import Names

LAYER = {
    "around_attention.norm": "ln_1",
    **{f"self_attention.to_{x}": f"attn.c_attn[{i}/3] as transposed" for i, x in enumerate("qkv")},
    "self_attention.to_output": "attn.c_proj as transposed",
    "around_mlp.norm": "ln_2",
    "mlp.widen": "mlp.c_fc as transposed",
    "mlp.narrow": "mlp.c_proj as transposed",
}
HUGGING_FACE: Names = {
    "embedding": "transformer.wte",
    "positions.positions.table": "transformer.wpe.weight",
    **{f"decoder.{{i}}.{ours}": f"transformer.h.{{i}}.{part}" for ours, part in LAYER.items()},
    "norm": "transformer.ln_f",
}
LIBRARIES: dict[str, Names] = {"huggingface": HUGGING_FACE}
TIED: tuple[tuple[str, ...], ...] = (("transformer.wte.weight", "lm_head.weight"),)


def fitted(positions: Float[Tensor, "T D"], count: int) -> Float[Tensor, "T2 D"] | None:
    """Learnt positions of texts that may be no longer than so: the first; beyond theirs, none."""
    return positions[:count] if count <= len(positions) else None
