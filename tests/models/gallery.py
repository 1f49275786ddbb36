"""A few pictures and captions, and a small captioner of every kind and with every choice."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.models.caption.captioner import CaptionerConfig, CaptionHidden
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig

VOCABULARY = 11
WORDS = {"vocabulary": VOCABULARY, "dropout": 0.0}
TOLD = ShowAndTellConfig(width=8, **WORDS)
SOFT = ShowAttendTellConfig(width=8, hidden=6, sharpness=1.5, **WORDS)
HARD = ShowAttendTellConfig(width=8, hidden=6, glance="hard", **WORDS)

CAPTIONERS: dict[str, CaptionerConfig] = {
    "show-and-tell": TOLD,
    "show-and-tell gru deep": ShowAndTellConfig(width=8, depth=2, cell="gru", stage=2, **WORDS),
    "show-and-tell always": ShowAndTellConfig(width=8, shown="always", **WORDS),
    "show-and-tell vanilla": ShowAndTellConfig(width=8, cell="vanilla", stage=3, **WORDS),
    "show-attend-tell": SOFT,
    "show-attend-tell vit": ShowAttendTellConfig(
        width=8, hidden=6, encoder="vit-nano", stage=1, **WORDS
    ),
    "show-attend-tell reads first": replace(SOFT, reads_first=True, places=True),
    "show-attend-tell hard": HARD,
    "show-attend-tell hard reads first": replace(HARD, reads_first=True),
}

PICTURES = torch.randint(
    256, (2, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
)
CAPTIONS = [[1, 6, 5], [1, 9, 8, 4, 4, 5], [1], [1, 7, 4, 9]]
OF = torch.tensor([0, 1, 1, 0])


def rows(captions: list[list[int]]) -> Rows:
    lengths = torch.tensor([len(caption) for caption in captions])
    return Rows.of(torch.tensor([word for caption in captions for word in caption]), lengths)


def build(config: CaptionerConfig, dtype: torch.dtype = torch.float64) -> Any:
    """A captioner in use, with weights large enough for words to matter; always the same."""
    torch.manual_seed(0)
    model = config.build().to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("image_encoder."):
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def told(
    model: Any,
    captions: list[list[int]] = CAPTIONS,
    of: Tensor = OF,
    pictures: Tensor = PICTURES,
) -> CaptionHidden:
    return model(pictures, rows(captions), of)


def each(captions: list[list[int]], known: Tensor) -> list[Tensor]:
    """What is known of each caption."""
    return list(known.split([len(caption) for caption in captions]))
