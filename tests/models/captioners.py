"""Small Transformers that tell of small pictures, and something to tell."""

from typing import Any

import torch
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.models.caption.caption_transformer import CaptionTransformer, CaptionTransformerConfig

VOCABULARY = 11
CONFIGS: dict[str, CaptionTransformerConfig] = {
    name: CaptionTransformerConfig(
        **{
            **{"vocabulary": VOCABULARY, "width": 8, "heads": 2, "hidden": 16, "depth": 2},
            **{"dropout": 0.0, "longest": 24, "encoder_depth": 2, **options},
        }
    )
    for name, options in {
        "cnn pre": {"stage": 2},
        "cnn post": {"stage": 3, "residual": "post"},
        "cnn without layers in between": {"stage": 2, "encoder_depth": 0},
        "vit of another width": {"encoder": "vit-nano", "encoder_depth": 0},
        "vit of the same width": {"encoder": "vit-nano", "encoder_depth": 0, "width": 96},
    }.items()
}
PICTURES = torch.randint(
    256, (3, 3, 16, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)
WORDS = torch.randint(4, VOCABULARY, (40,), generator=torch.Generator().manual_seed(1))
OF = [0, 0, 0, 1, 2, 2]
LENGTHS = [4, 2, 6, 6, 1, 5]


def build(config: CaptionTransformerConfig, dtype: torch.dtype = torch.float64) -> Any:
    """A model in use whose words and pictures matter; always the same."""
    torch.manual_seed(0)
    model = config.build().to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("image_encoder."):
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def rows(lengths: list[int], words: Tensor = WORDS) -> Rows:
    return Rows.of(words[: sum(lengths)], torch.tensor(lengths))


def one_by_one(
    model: CaptionTransformer, pictures: Tensor, captions: Rows, of: list[int]
) -> Tensor:
    """Each caption by itself, without a neighbour, next to its picture alone."""
    parts = captions.tokens.split(captions.lengths.tolist())
    words, known = model.words, list[Tensor]()
    for number, part in zip(of, parts):
        memory = model.see(pictures[number : number + 1])
        known.append(words.decode(part[None], memory)[0])
    return torch.cat(known)
