"""C7: without the causal mask a decoder reads the answer, and learns nothing else."""

import itertools
import math
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import BarPanel, Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.positions import Added, LearnedPositions
from saccade.blocks.stack import WholeSequences
from saccade.data.lingua import LinguaSettings, pairs
from saccade.data.tokens.words import words
from saccade.train.devices.distributed import choose_device

WIDTH, HEADS, DEPTH = 96, 4, 2
STEPS, ROWS, EVERY = 600, 64, 20
SENTENCES, HELD_OUT, WRITTEN = 4000, 200, 100
LENGTH = 8  # words of every sentence, the full stop not counted
START = "<start>"
NAMES = {"with the mask": True, "without": False}
Sentences = list[tuple[str, ...]]


class SmallDecoder(nn.Module):
    """Words + positions → blocks → the next word; whether blocks see the future is a setting."""

    def __init__(self, vocabulary: int, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.positions = Added(LearnedPositions(LENGTH + 2, WIDTH))
        self.blocks = nn.ModuleList(
            EncoderLayer(WIDTH, heads=HEADS, hidden=4 * WIDTH, residual="pre") for _ in range(DEPTH)
        )
        self.norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        x = self.positions(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, WholeSequences(causal=self.causal))
        return self.norm(x) @ self.embedding.weight.T


@cache
def sentences_of(split: str, count: int) -> Sentences:
    """English sentences of one length, as words; made once for all seeds."""
    settings = LinguaSettings(shortest=LENGTH, longest=LENGTH)
    every = (tuple(words(pair.source)) for pair in pairs(split, 2 * count, settings))
    return list(itertools.islice((one for one in every if len(one) == LENGTH + 1), count))


def learn(
    tokens: Int[Tensor, "rows T"], size: int, steps: int, *, causal: bool, seed: int
) -> tuple[SmallDecoder, list[float]]:
    """Train on the next word; the loss of every update."""
    torch.manual_seed(seed)
    model = SmallDecoder(size, causal=causal).to(tokens.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses: list[float] = []
    for _ in range(steps):
        rows = tokens[torch.randint(len(tokens), (ROWS,))]
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model.eval(), losses


@torch.no_grad()
def next_word_loss(model: SmallDecoder, tokens: Int[Tensor, "rows T"]) -> float:
    """Where nothing but the words so far is there to be read, as when one writes."""
    every = [
        F.cross_entropy(model(tokens[:, :t])[:, -1], tokens[:, t])
        for t in range(1, tokens.shape[1])
    ]
    return torch.stack(every).mean().item()


@torch.no_grad()
def write_sentences(
    model: SmallDecoder, start: int, count: int, seed: int
) -> Int[Tensor, "rows T"]:
    """Drawn word by word, each from what was written before it."""
    rng = torch.Generator().manual_seed(seed)
    tokens = torch.full((count, 1), start)
    for _ in range(LENGTH + 1):
        logits = model(tokens.to(model.norm.weight.device))[:, -1].cpu()
        tokens = torch.cat([tokens, logits.softmax(-1).multinomial(1, generator=rng)], dim=1)
    return tokens[:, 1:]


def seen_pairs(written: Sentences, known: set[tuple[str, str]]) -> float:
    """The share of neighbouring words that were neighbours in what was learnt from."""
    every = [pair for one in written for pair in itertools.pairwise(one)]
    return sum(pair in known for pair in every) / len(every)


class _Tried(NamedTuple):
    """One decoder: its losses in training, with the future hidden, and what it writes."""

    losses: list[float]
    held_out: float
    pairs: float
    written: Sentences


def _try(work: Workshop, *, causal: bool, seed: int) -> _Tried:
    learnt = sentences_of("train", SENTENCES)
    vocabulary = [START, *dict.fromkeys(word for one in learnt for word in one)]
    number = {word: at for at, word in enumerate(vocabulary)}
    device = choose_device(work.device)

    def encoded(some: Sentences) -> Int[Tensor, "rows T"]:
        known = [one for one in some if all(word in number for word in one)]
        return torch.tensor([[number[word] for word in (START, *one)] for one in known])

    steps = work.share(STEPS)
    with torch.random.fork_rng(devices=[]):
        tokens = encoded(learnt).to(device)
        model, losses = learn(tokens, len(vocabulary), steps, causal=causal, seed=seed)
    held_out = next_word_loss(model, encoded(sentences_of("valid", HELD_OUT)).to(device))
    tokens = write_sentences(model, number[START], WRITTEN, seed)
    written = [tuple(vocabulary[at] for at in row) for row in tokens.tolist()]
    known = {pair for one in learnt for pair in itertools.pairwise(one)}
    return _Tried(losses, held_out, seen_pairs(written, known), written)


def _measure(work: Workshop) -> Finding:
    tried = {
        name: [_try(work, causal=causal, seed=seed) for seed in work.seeds]
        for name, causal in NAMES.items()
    }
    last = {n: over_seeds(0, [math.fsum(r.losses[-10:]) / 10 for r in v]) for n, v in tried.items()}
    hidden = {n: over_seeds(0, [run.held_out for run in v]) for n, v in tried.items()}
    known = {n: over_seeds(0, [100 * run.pairs for run in v]) for n, v in tried.items()}
    masked, leaking = NAMES
    return Finding(
        verdict=f"Without the mask the training loss falls to {last[leaking].mean:.3f} nats a word "
        f"(with it: {last[masked].mean:.2f}). With the future hidden, as when one writes, it is "
        f"{hidden[leaking].mean:.1f} against {hidden[masked].mean:.1f}, and of the pairs of "
        f"neighbours that it writes {known[leaking].mean:.0f} % were ever read, against "
        f"{known[masked].mean:.0f} %.",
        holds=last[leaking].high < 0.5 * last[masked].low
        and hidden[leaking].low > hidden[masked].high
        and known[leaking].high < known[masked].low,
        head=("decoder", "training loss", "future hidden", "known pairs", "it writes"),
        rows=tuple(
            (
                name,
                f"{last[name].mean:.3f}",
                f"{hidden[name].mean:.2f}",
                f"{known[name].mean:.0f} %",
                " ".join(tried[name][0].written[0]),
            )
            for name in NAMES
        ),
        lines=(_curves(tried),),
        bars=(
            BarPanel(
                title="With the future hidden",
                x_title="loss of the next word, in nats",
                groups=tuple(NAMES),
                bars={"loss": tuple(hidden.values())},
            ),
        ),
    )


def _curves(tried: dict[str, list[_Tried]]) -> LinePanel:
    def line(runs: list[_Tried]) -> tuple[Mark, ...]:
        starts = range(0, len(runs[0].losses), EVERY)
        return tuple(
            over_seeds(at + EVERY, [_mean(run.losses[at : at + EVERY]) for run in runs])
            for at in starts
        )

    return LinePanel(
        title="While it learns",
        x_title="updates",
        y_title="training loss in nats",
        lines={name: line(runs) for name, runs in tried.items()},
    )


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


CLAIM = LectureClaim(
    key="C7",
    title="Leakage: a decoder without the causal mask",
    claim="Self-attention in a decoder must not see later words: it would copy the answer in "
    "training, and find none when it has to write.",
    expect="Without the mask the training loss drops to almost nothing; with the future hidden it "
    "is far worse than that of the decoder that was masked, and what it writes is no English.",
    seconds=90,
    measure=_measure,
)
