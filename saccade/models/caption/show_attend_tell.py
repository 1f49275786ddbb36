"""Show, Attend and Tell: an RNN looks at the image before each word (Xu et al. 2015,
arXiv:1502.03044), at all cells softly or at one of them.

As in the authors' code, the hidden state bends through a tanh before words are scored, and the gate
is one number. Departs from it in the encoder, of which any will do, and in fresh recurrent weights
that keep what they hold.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.attention.axes import TARGET, Axis
from saccade.attention.scores import Additive
from saccade.attention.site import Site
from saccade.blocks.dropout import Dropout
from saccade.blocks.inference.affine import Precision, affine
from saccade.blocks.inference.recurrent import Linear, PackedRnn, WordTable, joined
from saccade.blocks.output import OutputLayer, Readout
from saccade.blocks.positions import GridPositions
from saccade.blocks.recurrent.attending_rnn import AttendedSteps, LoopWeights, attending_rnn
from saccade.blocks.recurrent.memory import AttentionMemory, look
from saccade.blocks.recurrent.rnn import Rnn, RnnState
from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.caption.captioner import Captioner, CaptionerConfig, CaptionHidden, Glances
from saccade.models.inference.recurrent import PackedStep, RecurrentDecoding, StateSizes, Stepped
from saccade.models.vision.grid_encoder import GridEncoder

GlanceKind = Literal["soft", "hard"]


@dataclass(frozen=True, kw_only=True)
class ShowAttendTellConfig(CaptionerConfig):
    """Sizes and choices of Show, Attend and Tell.

    Args:
        width: of words, of the score's hidden layer and of what words are scored from.
        hidden: width of the recurrent state.
        dropout: share of what words are scored from that is left out.
        glance: look at all cells softly, or at a single one.
        soft_batches: share of batches in which a model of single glances learns to look softly.
        sharpness: what scores are multiplied by before they become weights.
        reads_first: read the last word before looking for the next, so that "a blue …" looks for
            what is blue; as published the state looks first, which has not read it yet.
        places: add to each cell where it lies, so that it has a place as well as a content.
    """

    shows_attention: ClassVar[bool] = True

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

    @property
    def hard(self) -> bool:
        """Whether it looks at a single cell for each word."""
        return self.glance == "hard"

    def build(self) -> "ShowAttendTell":
        return ShowAttendTell(self)


class ImageAttention(Site):
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

    def remember(self, cells: Float[Tensor, "B cells C"]) -> AttentionMemory:
        """Keys and values, computed once for all words."""
        return AttentionMemory(self.score.of_key(cells), cells).to(self.score.weight.dtype)

    def draw(self, weights: Float[Tensor, "B k cells"]) -> Int[Tensor, "B k 1"]:
        """One cell for each look: by chance while learning, else the one with most weight.

            the first i with a₁ + … + aᵢ > u        u ∼ U(0, 1)

        torch's own draw stops the program at weights that are no numbers; an update that went
        wrong is to be passed over.
        """
        if not self.training:
            return weights.argmax(dim=-1, keepdim=True)
        sums = weights.cumsum(dim=-1)
        if weights.is_cuda:  # whose cumsum adds in any order
            sums = weights @ weights.new_ones(2 * weights.shape[-1:]).triu()
        u = torch.rand_like(sums[..., -1:]) * sums[..., -1:]
        return (sums <= u).sum(dim=-1, keepdim=True).clamp(max=weights.shape[-1] - 1)


class ByTime(NamedTuple):
    """The words of all captions in the order of a loop: all first words, all second ones, …

    The longest captions come first, so that at step t the first `going[t]` rows go on. `places`
    says where each word stands in the captions end to end.
    """

    captions: Rows
    order: Int[Tensor, " R"]
    going: list[int]
    places: Int[Tensor, " words"]

    @classmethod
    def of(cls, captions: Rows) -> "ByTime":
        lengths, device = captions.lengths, captions.tokens.device
        if captions.rectangular:  # nothing for a GPU to wait for
            rows, words = len(lengths), len(captions.tokens)
            places = torch.arange(words, device=device).view(rows, -1).T.flatten()
            return cls(
                captions, torch.arange(rows, device=device), [rows] * (words // rows), places
            )
        order = lengths.argsort(descending=True, stable=True)
        there = lengths[order] > torch.arange(int(lengths.max()))[:, None]  # (T, R)
        times, ranks = there.nonzero(as_tuple=True)
        places = (lengths.cumsum(0) - lengths)[order[ranks]] + times
        order, places = (x.to(device, non_blocking=True) for x in (order, places))
        return cls(captions, order, there.sum(dim=1).tolist(), places)

    def end_to_end(self, x: Float[Tensor, "words *rest"]) -> Float[Tensor, "words *rest"]:
        """What a loop gave for each word, in the captions' order."""
        if self.captions.rectangular:
            return x.unflatten(0, (len(self.going), -1)).transpose(0, 1).flatten(0, 1)
        return torch.zeros_like(x).index_copy(0, self.places, x)

    def rectangle(self, x: Float[Tensor, "words *rest"]) -> Float[Tensor, "R T *rest"]:
        """The same by caption and time, zero beyond a caption's end."""
        return self.captions.rectangle(self.end_to_end(x))


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


@dataclass(frozen=True)
class ShowAttendTellState:
    """The cells of each image, the decoder's own state, and where the cells lie."""

    memory: AttentionMemory
    rnn: RnnState
    grid: Axis

    def select(self, rows: Int[Tensor, " R2"]) -> "ShowAttendTellState":
        return replace(self, memory=self.memory.select(rows), rnn=self.rnn.select(rows))


class ShowAttendTell(Captioner):
    """Image → cells → read again before every word.

        hₜ, sₜ = LSTM([E yₜ₋₁; cₜ], hₜ₋₁, sₜ₋₁)
        ŷₜ = softmax(O tanh(H hₜ + E yₜ₋₁ + Z cₜ))

    The first state comes from the mean of all cells.
    """

    def __init__(self, config: ShowAttendTellConfig) -> None:
        super().__init__()
        self.config = config
        self.image_encoder = GridEncoder(config.encoder, stage=config.stage, frozen=config.frozen)
        channels, width, hidden = self.image_encoder.channels, config.width, config.hidden
        self.places = GridPositions(channels) if config.places else None
        self.dropout = Dropout(config.dropout)
        self.first = nn.Linear(channels, channels)
        self.first_hidden = nn.Linear(channels, hidden)
        self.first_cell = nn.Linear(channels, hidden)
        self.cross_attention = ImageAttention(channels, config)
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.rnn = Rnn(width + channels, hidden, cell="lstm")
        self.of_hidden = nn.Linear(hidden, width)
        self.of_context = nn.Linear(channels, width, bias=False)
        self.readout = Readout(width, config.vocabulary)
        if config.glance == "hard":
            self.baseline = Baseline()
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.readout.weight, self.readout.bias)

    def start(self, images: UInt8[Tensor, "B 3 H W"]) -> ShowAttendTellState:
        """Look at the images once; the mean of all cells is where the decoder starts.

        m = dropout(max(A mean of z, 0))        h₀ = tanh(B m)        s₀ = tanh(C m)
        """
        cells, grid = self.image_encoder(images)
        if self.places is not None:
            cells = cells + self.places((grid.height, grid.width))
        mean = self.dropout(self.first(cells.mean(dim=1)).relu())
        hidden, cell = (
            layer(mean).tanh().to(layer.weight.dtype)  # rounded no further, under autocast too
            for layer in (self.first_hidden, self.first_cell)
        )
        first = RnnState(hidden[:, None], cell[:, None])
        return ShowAttendTellState(self.cross_attention.remember(cells), first, grid)

    def forward(
        self, images: UInt8[Tensor, "B 3 H W"], captions: Rows, of: Int[Tensor, " R"]
    ) -> CaptionHidden:
        by_time, state, hard = ByTime.of(captions), self.start(images), self._site.hard()
        tokens = captions.tokens[by_time.places]
        words = self.embedding(tokens)
        run = self._loop(tokens, by_time.going, state.select(of[by_time.order]), hard)
        hidden = by_time.end_to_end(self._hidden(words, run))
        looked, glances = by_time.rectangle(run.weights), None
        if hard is not None and run.drawn is not None:
            chance = run.weights.gather(1, run.drawn)[:, 0]
            log_chance = chance.clamp(min=torch.finfo(chance.dtype).tiny).log()
            glances = Glances(by_time.rectangle(log_chance), hard)
        if self._site.watcher is not None:
            self._show(by_time.rectangle(run.used(hard)), state.grid)
        return CaptionHidden(hidden, looked, glances)

    @torch.no_grad()
    def step(
        self, tokens: Int[Tensor, " R"], state: ShowAttendTellState
    ) -> tuple[Float[Tensor, "R V"], ShowAttendTellState]:
        hard = self._site.hard()
        run = self._loop(tokens, [len(tokens)], state, hard)
        assert run.cell is not None
        self._show(run.used(hard)[:, None], state.grid)
        after = RnnState(run.states[:, None], run.cell[:, None])
        return self.output(self._hidden(self.embedding(tokens), run)), replace(state, rnn=after)

    @property
    def _site(self) -> ImageAttention:
        return self.cross_attention

    def _loop(
        self,
        tokens: Int[Tensor, " words"],
        going: list[int],
        state: ShowAttendTellState,
        hard: Float[Tensor, ""] | None,
    ) -> AttendedSteps:
        """All that waits for the state before it, and no more."""
        (of_word, bias), of_context, of_state = self._of_cell()
        asks = self._site.of_word
        return attending_rnn(
            "lstm",
            self._of_words(tokens, of_word, bias),
            going,
            state.rnn.of_layer(0),
            state.memory,
            LoopWeights(of_context, *joined(self._of_query(), *of_state), self._site.weight),
            asks=None if asks is None else self._of_words(tokens, asks.weight),
            draw=self._site.draw,
            hard=hard,
        )

    def _of_cell(self) -> tuple[Linear, Float[Tensor, "G C"], list[Linear]]:
        """What words and what was read give to the cell, and what the state before gives to it
        and to the gate of what is read.
        """
        w, u, b, d = self.rnn.weights(0)
        width, gate = self.embedding.embedding_dim, self._site.gate
        return (w[:, :width], b), w[:, width:], [(u, d), (gate.weight, gate.bias)]

    def _of_query(self) -> Linear:
        return self._site.score.of_query.weight, self._site.score.of_query.bias

    def _of_words(
        self, tokens: Int[Tensor, " words"], weight: Tensor, bias: Tensor | None = None
    ) -> Float[Tensor, "words out"]:
        """A product with the embedding of each word, of a small vocabulary with each only once."""
        table = self.embedding.weight
        if len(table) < len(tokens):
            return F.embedding(tokens, F.linear(table, weight, bias))
        return F.linear(self.embedding(tokens), weight, bias)

    def _hidden(
        self, words: Float[Tensor, "words D"], run: AttendedSteps
    ) -> Float[Tensor, "words D"]:
        deep = self.of_hidden(self.dropout(run.states)) + words
        return self.dropout((deep + self.of_context(run.reads)).tanh())

    def _show(self, used: Float[Tensor, "R T cells"], grid: Axis) -> None:
        site = self._site
        if site.watcher is not None:
            site.columns = grid
            site.watcher(used[:, None])

    def for_decoding(self, precision: Precision) -> RecurrentDecoding | None:
        """The same packed, for decoding only."""
        return None if precision == "int8" else RecurrentDecoding(self, precision)

    def packed(self, precision: Precision) -> PackedStep:
        """What a word, the state before or what is read gives to several layers is one product."""
        rnn, site, (word, of_context, state) = (
            PackedRnn(self.rnn, precision),
            self._site,
            self._of_cell(),
        )
        width, gates = self.embedding.embedding_dim, len(of_context)
        units, score = torch.eye(width).to(word[0]), 2 * site.weight.detach()
        from_words = [word, (units, self.of_hidden.bias)]
        if site.of_word is not None:
            from_words.append((2 * site.of_word.weight, torch.zeros_like(score)))
        query, query_bias = self._of_query()
        table = WordTable(self.embedding.weight, *joined(*from_words), precision)
        of_state = affine(*joined((2 * query, 2 * query_bias), *state), precision=precision)
        of_read = affine(torch.cat([of_context, self.of_context.weight]), None, precision=precision)
        deep, score = (
            affine(self.of_hidden.weight, None, precision=precision),
            score.to(table.table),
        )

        def step(
            y: Tensor, memory: AttentionMemory, before: RnnState, into: RnnState | None
        ) -> Stepped:
            x, asks = table(y).tensor_split([gates + width], dim=1)
            q, u, gate = of_state(before.hidden[:, 0]).split([len(score), gates, 1], dim=1)
            a, found = look(q + asks if asks.shape[1] else q, memory, score)
            if site.single:
                best = a.argmax(dim=-1, keepdim=True).expand(-1, -1, found.shape[1])
                found = memory.values.gather(1, best).flatten(0, 1)
            x = of_read(found * gate.sigmoid()).add_(x)
            h, after = rnn(x[:, :gates], [u], before, into)
            return deep(h).add_(x[:, gates:]).tanh_(), after

        def prepare(memory: AttentionMemory) -> AttentionMemory:
            return memory._replace(keys=2 * memory.keys)

        values = self.image_encoder.channels
        sizes = StateSizes(len(score), values, self.rnn.width, 1, has_cell=True)
        return PackedStep(step, table, prepare, sizes)


PUBLISHED = ShowAttendTellConfig(
    vocabulary=10_000, encoder="resnet-50", stage=4, width=512, hidden=1800
)
PRESETS: dict[str, ModelConfig] = {
    "show-attend-tell": PUBLISHED,
    "show-attend-tell-small": ShowAttendTellConfig(dropout=0.1),
    "show-attend-tell-hard-small": ShowAttendTellConfig(dropout=0.1, glance="hard"),
}
