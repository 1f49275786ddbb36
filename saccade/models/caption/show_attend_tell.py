"""Show, Attend and Tell: an RNN looks at the picture before each word (Xu et al. 2015,
arXiv:1502.03044), at all cells softly or at one of them.

As in the authors' code, what is known bends through a tanh before words are scored, and the gate
is one number. Departs from it in the encoder, of which any will do, and in fresh recurrent weights
that keep what they hold.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import TARGET, Axis
from saccade.attention.scores import Additive
from saccade.attention.site import Site
from saccade.blocks.dropout import Dropout
from saccade.blocks.inference.affine import Affine
from saccade.blocks.output import OutputLayer
from saccade.blocks.positions import GridPositions
from saccade.blocks.recurrent.attending_rnn import Looked
from saccade.blocks.recurrent.gates import GATES
from saccade.blocks.recurrent.glancing_rnn import (
    Glanced,
    GlanceWeights,
    glance,
    glancing_rnn,
    ready,
)
from saccade.blocks.recurrent.rnn import Rnn
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.rows import Rows
from saccade.errors import ConfigError
from saccade.models.caption.captioner import Captioner, CaptionerConfig, Eye, Glances, Told
from saccade.models.text.stepwise import packed

GlanceKind = Literal["soft", "hard"]


@dataclass(frozen=True, kw_only=True)
class ShowAttendTellConfig(CaptionerConfig):
    """Sizes and choices of Show, Attend and Tell.

    Args:
        width: of words, of the score's hidden layer and of what words are scored from.
        hidden: width of the recurrent state.
        dropout: share of what is known that is hidden when words are scored.
        glance: look at all cells softly, or at a single one.
        soft_batches: share of batches in which a model of single glances learns to look softly.
        sharpness: what scores are multiplied by before they become weights.
        reads_first: read the last word before looking for the next, so that "a blue …" looks for
            what is blue; as published the state looks first, which has not read it yet.
        places: add to each cell where it lies, so that what is seen can be told from where.
    """

    stage: int = 3
    width: int = 256
    hidden: int = 256
    dropout: float = 0.5
    glance: GlanceKind = "soft"
    soft_batches: float = 0.5
    sharpness: float = 1.0
    reads_first: bool = False
    places: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "vocabulary", "width", "hidden")
        check_fraction(self, "dropout")
        if not 0 <= self.soft_batches <= 1:
            raise ConfigError(f"soft_batches={self.soft_batches} must be from 0 to 1")
        if self.sharpness <= 0:
            raise ConfigError(f"sharpness={self.sharpness} must be more than 0")

    def build(self) -> "ShowAttendTell":
        return ShowAttendTell(self)


class Looker(Site):
    """The state before a word looks for it, and says how much of what it reads matters.

        eₜᵢ = wᵀ tanh(Q hₜ₋₁ + K zᵢ)        aₜ = softmax(eₜ)        cₜ = σ(gᵀ hₜ₋₁ + b) Σᵢ aₜᵢ zᵢ

    Where the last word is read first, the query is Q hₜ₋₁ + P E yₜ₋₁.
    """

    def __init__(self, channels: int, config: ShowAttendTellConfig) -> None:
        super().__init__(TARGET)
        self.sharpness, self.soft_batches = config.sharpness, config.soft_batches
        self.single = config.glance == "hard"
        self.score = Additive(config.hidden, channels, hidden=config.width)
        self.gate = nn.Linear(config.hidden, 1)
        self.of_word = None
        if config.reads_first:
            self.of_word = nn.Linear(config.width, config.width, bias=False)

    def hard(self) -> Float[Tensor, ""] | None:
        """Whether a batch takes single glances: always in use, by chance while learning."""
        if not self.single:
            return None
        like = self.score.weight
        if not self.training:
            return like.new_ones(())
        return (torch.rand_like(like[0]) >= self.soft_batches).to(like)

    @property
    def weight(self) -> Float[Tensor, " F"]:
        """Of the score, with its sharpness."""
        return self.sharpness * self.score.weight

    def remember(self, cells: Float[Tensor, "B cells C"]) -> Looked:
        """Keys and values, computed once for all words."""
        return Looked(self.score.of_key(cells), cells, None).to(self.score.weight.dtype)

    def draw(self, weights: Float[Tensor, "B k cells"]) -> Int[Tensor, "B k 1"]:
        """One cell for each look: by chance while learning, else the one with most weight.

            the first i with a₁ + … + aᵢ > u        u ∼ U(0, 1)

        torch's own draw stops the program at weights that are no numbers; an update that went
        wrong is to be passed over.
        """
        if not self.training:
            return weights.argmax(dim=-1, keepdim=True)
        sums = weights.cumsum(dim=-1)
        u = torch.rand_like(sums[..., -1:]) * sums[..., -1:]
        return (sums <= u).sum(dim=-1, keepdim=True).clamp(max=weights.shape[-1] - 1)


class ByTime(NamedTuple):
    """The words of all captions in the order of a loop: all first words, all second ones, …

    The longest captions come first, so that at step t the first `going[t]` rows go on. `places`
    says where each word stands in the captions end to end, `rows` and `times` in which caption and
    how far into it.
    """

    order: Int[Tensor, " R"]
    going: list[int]
    places: Int[Tensor, " words"]
    rows: Int[Tensor, " words"]
    times: Int[Tensor, " words"]

    @classmethod
    def of(cls, captions: Rows) -> "ByTime":
        lengths = captions.lengths
        order = lengths.argsort(descending=True, stable=True)
        there = lengths[order] > torch.arange(int(lengths.max()))[:, None]  # (T, R)
        times, ranks = there.nonzero(as_tuple=True)
        rows = order[ranks]
        places = (lengths.cumsum(0) - lengths)[rows] + times
        moved = (
            x.to(captions.tokens.device, non_blocking=True) for x in (order, places, rows, times)
        )
        order, places, rows, times = moved
        return cls(order, there.sum(dim=1).tolist(), places, rows, times)

    def end_to_end(self, x: Float[Tensor, "words D"]) -> Float[Tensor, "words D"]:
        """What a loop gave for each word, in the captions' order."""
        return torch.zeros_like(x).index_copy(0, self.places, x)

    def rectangle(self, x: Float[Tensor, "words *rest"]) -> Float[Tensor, "R T *rest"]:
        """The same by caption and time, zero beyond a caption's end."""
        zeros = x.new_zeros(len(self.order), len(self.going), *x.shape[1:])
        return zeros.index_put((self.rows, self.times), x)


class Baseline(nn.Module):
    """The mean cost of a word of late, against which glances are judged. It starts at 0.

    b ← m b + (1 − m) cost
    """

    cost: Float[Tensor, ""]

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cost", torch.zeros(()))

    @torch.no_grad()
    def follow(self, cost: Float[Tensor, ""], memory: float) -> None:
        """One batch further, if it is learnt from; a cost that is no number is passed over."""
        if self.training:
            moved = torch.lerp(cost.to(self.cost), self.cost, memory)
            self.cost.copy_(moved.where(cost.isfinite(), self.cost))


class Lean(NamedTuple):
    """The layers of a step, those of the same input joined, and packed for many steps."""

    of_state: Affine
    of_input: Affine
    deep: Affine
    output: Affine


@dataclass
class ShowAttendTellState:
    """Implements `SharedState`: beams share the cells of their picture."""

    seen: Looked
    hidden: Float[Tensor, "R H"]
    cell: Float[Tensor, "R H"]
    grid: Axis
    lean: Lean | None = None

    def select(self, rows: Int[Tensor, " B2"]) -> "ShowAttendTellState":
        hidden, cell = (
            x.unflatten(0, (len(self.seen.keys), -1))[rows].flatten(0, 1)
            for x in (self.hidden, self.cell)
        )
        return replace(self, seen=self.seen.select(rows), hidden=hidden, cell=cell)

    def spread(self, beams: int) -> "ShowAttendTellState":
        hidden, cell = (x.repeat_interleave(beams, dim=0) for x in (self.hidden, self.cell))
        return replace(self, hidden=hidden, cell=cell)

    def follow(self, parents: Int[Tensor, "B k"]) -> "ShowAttendTellState":
        first = torch.arange(len(parents), device=parents.device)[:, None] * parents.shape[1]
        rows = (first + parents).flatten()
        return replace(self, hidden=self.hidden[rows], cell=self.cell[rows])


class ShowAttendTell(Captioner):
    """Picture → cells → read again before every word.

        hₜ, sₜ = LSTM([E yₜ₋₁; cₜ], hₜ₋₁, sₜ₋₁)
        ŷₜ = softmax(O tanh(H hₜ + E yₜ₋₁ + Z cₜ))

    The first state comes from the mean of all cells.
    """

    def __init__(self, config: ShowAttendTellConfig) -> None:
        super().__init__()
        self.config = config
        self.eye = Eye(config)
        channels, width, hidden = self.eye.channels, config.width, config.hidden
        self.places = GridPositions(channels) if config.places else None
        self.dropout = Dropout(config.dropout)
        self.first = nn.Linear(channels, channels)
        self.first_hidden = nn.Linear(channels, hidden)
        self.first_cell = nn.Linear(channels, hidden)
        self.cross_attention = Looker(channels, config)
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.rnn = Rnn(width + channels, hidden, cell="lstm")
        self.of_hidden = nn.Linear(hidden, width)
        self.of_context = nn.Linear(channels, width, bias=False)
        self.readout = nn.Linear(width, config.vocabulary)
        if config.glance == "hard":
            self.baseline = Baseline()
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def start(self, pictures: UInt8[Tensor, "B 3 H W"]) -> ShowAttendTellState:
        """Look at the pictures once; the mean of all cells is where the decoder starts.

        m = dropout(max(A mean of z, 0))        h₀ = tanh(B m)        s₀ = tanh(C m)
        """
        cells, grid = self.eye(pictures)
        if self.places is not None:
            cells = cells + self.places((grid.height, grid.width))
        mean = self.dropout(self.first(cells.mean(dim=1)).relu())
        hidden, cell = (
            layer(mean).tanh().to(layer.weight.dtype)  # rounded no further, under autocast too
            for layer in (self.first_hidden, self.first_cell)
        )
        return ShowAttendTellState(self.cross_attention.remember(cells), hidden, cell, grid)

    def forward(
        self, pictures: UInt8[Tensor, "B 3 H W"], captions: Rows, of: Int[Tensor, " R"]
    ) -> Told:
        by_time, state, hard = ByTime.of(captions), self.start(pictures), self._site.hard()
        tokens = captions.tokens[by_time.places]
        words = self.embedding(tokens)
        run = self._loop(tokens, by_time.going, state.select(of[by_time.order]), hard)
        known = by_time.end_to_end(self._known(words, run.states, run.reads))
        looked, glances = by_time.rectangle(run.weights), None
        if hard is not None:
            chance = run.weights.gather(1, run.drawn)[:, 0]
            log_chance = chance.clamp(min=torch.finfo(chance.dtype).tiny).log()
            glances = Glances(by_time.rectangle(log_chance), hard)
        if self._site.watcher is not None:
            self._show(by_time.rectangle(run.used(hard)), state.grid)
        return Told(known, looked, glances)

    @property
    def _site(self) -> Looker:
        return self.cross_attention

    def _loop(
        self,
        tokens: Int[Tensor, " words"],
        going: list[int],
        state: ShowAttendTellState,
        hard: Float[Tensor, ""] | None,
    ) -> Glanced:
        """All that waits for the state before it, and no more."""
        of_context = self.rnn.weights(0)[0][:, self.embedding.embedding_dim :]
        return glancing_rnn(
            self._into_cell(tokens),
            going,
            (state.hidden, state.cell),
            (state.seen.keys, state.seen.values),
            GlanceWeights(of_context, *self._of_state(), self._site.weight),
            asks=self._asks(tokens),
            draw=self._site.draw,
            hard=hard,
        )

    def _into_cell(self, tokens: Int[Tensor, " words"]) -> Float[Tensor, "words G"]:
        """What words give to the cell's gates."""
        w, _, b, _ = self.rnn.weights(0)
        return self._of_words(tokens, w[:, : self.embedding.embedding_dim], b)

    def _asks(self, tokens: Int[Tensor, " words"]) -> Float[Tensor, "words F"] | None:
        """What words add to the query."""
        of_word = self._site.of_word
        return None if of_word is None else self._of_words(tokens, of_word.weight)

    def _of_words(
        self, tokens: Int[Tensor, " words"], weight: Tensor, bias: Tensor | None = None
    ) -> Float[Tensor, "words out"]:
        """A product with the embedding of each word, of a small vocabulary with each only once."""
        table = self.embedding.weight
        if len(table) < len(tokens):
            return F.embedding(tokens, F.linear(table, weight, bias))
        return F.linear(self.embedding(tokens), weight, bias)

    def _of_state(self) -> tuple[Float[Tensor, "joint H"], Float[Tensor, " joint"]]:
        """What the state before a word is multiplied with: for the query, the cell and the gate."""
        _, u, _, d = self.rnn.weights(0)
        query, gate = self._site.score.of_query, self._site.gate
        return torch.cat([query.weight, u, gate.weight]), torch.cat([query.bias, d, gate.bias])

    def _known(
        self,
        words: Float[Tensor, "words D"],
        states: Float[Tensor, "words H"],
        read: Float[Tensor, "words C"],
    ) -> Float[Tensor, "words D"]:
        deep = self.of_hidden(self.dropout(states)) + words + self.of_context(read)
        return self.dropout(deep.tanh())

    def _show(self, used: Float[Tensor, "R T cells"], grid: Axis) -> None:
        site = self._site
        if site.watcher is not None:
            site.columns = grid
            site.watcher(used[:, None])

    @torch.no_grad()
    def step(
        self, tokens: Int[Tensor, " R"], state: ShowAttendTellState
    ) -> tuple[Float[Tensor, "R V"], ShowAttendTellState]:
        site, lean, seen = self._site, state.lean, state.seen
        if lean is None:
            lean, seen = self._lean(), ready(seen)
        words, pictures = self.embedding(tokens), len(seen.keys)
        sizes = [words.shape[1], 4 * self.rnn.width, 1]
        q, u, gate = lean.of_state(state.hidden).split(sizes, dim=1)
        q = q if site.of_word is None else q + site.of_word(words)
        _, used, found, _ = glance(
            q.unflatten(0, (pictures, -1)), seen, site.weight, site.draw, site.hard()
        )
        self._show(used.flatten(0, 1)[:, None], state.grid)
        read = found.flatten(0, 1) * gate.sigmoid()
        into = lean.of_input(torch.cat([words, read], dim=1))
        (h, c), _ = GATES["lstm"].step(into, u, (state.hidden, state.cell))
        assert c is not None
        deep = lean.deep(torch.cat([self.dropout(h), read], dim=1)) + words
        scores = lean.output(self.dropout(deep.tanh_()))
        return scores, replace(state, seen=seen, hidden=h, cell=c, lean=lean)

    def _lean(self) -> Lean:
        w, _, b, _ = self.rnn.weights(0)
        deep = torch.cat([self.of_hidden.weight, self.of_context.weight], dim=1)
        layers = (self._of_state(), (w, b), (deep, self.of_hidden.bias), self.output)
        return Lean(*(packed(OutputLayer(*layer)) or OutputLayer(*layer) for layer in layers))


PUBLISHED = ShowAttendTellConfig(
    vocabulary=10_000, encoder="resnet-50", stage=4, width=512, hidden=1800
)
PRESETS: dict[str, ModelConfig] = {
    "show-attend-tell": PUBLISHED,
    "show-attend-tell-small": ShowAttendTellConfig(dropout=0.1),
    "show-attend-tell-hard-small": ShowAttendTellConfig(dropout=0.1, glance="hard"),
}
