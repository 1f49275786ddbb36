"""Show and Tell: an RNN captions an image in one vector (Vinyals et al. 2015, arXiv:1411.4555).

The whole image passes through that vector: the bottleneck. As published the decoder is shown it
once; the lectures' decoder has it beside every word. Departs from the paper in the cell, which is
the standard one with biases and a bent output, and in fresh weights that keep what they hold.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.blocks.output import OutputLayer, Readout
from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.models.caption.captioner import Captioner, CaptionerConfig, CaptionHidden
from saccade.models.text.stepwise import StepState, packed
from saccade.models.vision.grid_encoder import GridEncoder


@dataclass(frozen=True, kw_only=True)
class ShowAndTellConfig(CaptionerConfig):
    """Sizes of Show and Tell.

    Args:
        cell: what recurs.
        width: of words, of the image and of the state.
        depth: layers on each other.
        dropout: share of a layer's output that is dropped in training.
        shown: the image comes once, before the first word, or with every word as well.
    """

    cell: CellKind = "lstm"
    width: int = 512
    depth: int = 1
    dropout: float = 0.3
    shown: Literal["once", "always"] = "once"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "vocabulary", "width", "depth")
        check_fraction(self, "dropout")

    def build(self) -> "ShowAndTell":
        return ShowAndTell(self)


@dataclass
class ShowAndTellState(StepState):
    """The decoder's own state, and the image where it is shown always."""

    rnn: RnnState
    seen: Float[Tensor, "R D"] | None

    def select(self, rows: Int[Tensor, " R2"]) -> "ShowAndTellState":
        seen = None if self.seen is None else self.seen[rows]
        return ShowAndTellState(self.rnn.select(rows), seen, output=self.output)


class ShowAndTell(Captioner):
    """An image is the word before the first.

        c = W mean of z        x₋₁ = c        xₜ = E yₜ
        hₜ = f(xₜ, hₜ₋₁)        ŷₜ₊₁ = softmax(O hₜ)

    Shown always, it is part of every word: xₜ = E yₜ + c.
    """

    def __init__(self, config: ShowAndTellConfig) -> None:
        super().__init__()
        self.config, self.always = config, config.shown == "always"
        self.image_encoder = GridEncoder(config.encoder, stage=config.stage, frozen=config.frozen)
        self.project = nn.Linear(self.image_encoder.channels, config.width, bias=False)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        sizes = {"cell": config.cell, "depth": config.depth, "dropout": config.dropout}
        self.rnn = Rnn(config.width, config.width, **sizes)  # type: ignore[arg-type]
        self.dropout = Dropout(config.dropout)
        self.readout = Readout(config.width, config.vocabulary)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def seen(self, images: UInt8[Tensor, "B 3 H W"]) -> Float[Tensor, "B D"]:
        """Each image as a word: W mean of z."""
        cells, _ = self.image_encoder(images)
        return self.project(cells.mean(dim=1))

    def forward(
        self, images: UInt8[Tensor, "B 3 H W"], captions: Rows, of: Int[Tensor, " R"]
    ) -> CaptionHidden:
        first = self.seen(images)[of][:, None]
        words = self.embedding(captions.padded())
        if self.always:
            words = words + first
        x = torch.cat([first, words], dim=1)  # (R, 1 + T, D)
        h, _ = self.rnn(self.dropout(x))
        return CaptionHidden(captions.out_of_rectangle(self.dropout(h[:, 1:])))

    def start(self, images: UInt8[Tensor, "B 3 H W"]) -> ShowAndTellState:
        seen = self.seen(images)
        _, state = self.rnn(self.dropout(seen)[:, None])
        return ShowAndTellState(state, seen if self.always else None)

    def step(
        self, tokens: Int[Tensor, " R"], state: ShowAndTellState
    ) -> tuple[Float[Tensor, "R V"], ShowAndTellState]:
        x = self.embedding(tokens)
        if state.seen is not None:
            x = x + state.seen
        h, rnn = self.rnn(self.dropout(x)[:, None], state.rnn)
        output = state.output or packed(self.output)
        scores = (output or self.output)(self.dropout(h[:, 0]))
        return scores, ShowAndTellState(rnn, state.seen, output=output)


PRESETS: dict[str, ModelConfig] = {
    "show-and-tell": ShowAndTellConfig(vocabulary=12_000, encoder="resnet-50"),
    "show-and-tell-small": ShowAndTellConfig(width=256, dropout=0.0),
}
