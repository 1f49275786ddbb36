"""C9: under BatchNorm a sentence depends on its batch mates and padding, under LayerNorm not."""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, LinePanel, over_seeds
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark
from saccade.blocks.residual import NORMS, NormKind

WIDTH, WORDS = 64, 8
LONGEST = (8, 12, 16, 24, 32, 48, 64)
BATCHES = (2, 4, 8, 16, 32, 64)
NAMES: dict[str, NormKind] = {"BatchNorm": "batch", "LayerNorm": "layer"}
DRAWS = 20  # batches of other sentences around the same one


def ragged_batch(
    sentence: Float[Tensor, "T D"], mates: int, longest: int, rng: torch.Generator
) -> Float[Tensor, "B S D"]:
    """A sentence with others, each of its own length up to the longest; the rest is zero."""
    batch = torch.zeros(mates + 1, longest, sentence.shape[1])
    batch[0, : len(sentence)] = sentence
    for row in range(1, mates + 1):
        words = int(torch.randint(len(sentence), longest + 1, (), generator=rng))
        topic = torch.randn(sentence.shape[1], generator=rng)  # what its words have in common
        batch[row, :words] = topic + torch.randn(words, sentence.shape[1], generator=rng)
    return batch


@torch.no_grad()
def varies(kind: NormKind, batches: list[Float[Tensor, "B S D"]], words: int) -> float:
    """How much the normed first sentence differs from batch to batch.

    The root of the mean square of what differs from the mean over batches, over that of all.
    """
    norm = NORMS[kind](batches[0].shape[-1]).train()
    outputs = torch.stack([norm(batch)[0, :words] for batch in batches])  # (draws, T, D)
    return ((outputs - outputs.mean(dim=0)).norm() / outputs.norm()).item()


def padding_changes(kind: NormKind, longest: int, seed: int) -> float:
    """How far a sentence moves when zeros are put behind the whole batch.

    ‖norm(padded) − norm(bare)‖ / ‖norm(bare)‖
    """
    rng = torch.Generator().manual_seed(seed)
    bare = 1 + torch.randn(8, WORDS, WIDTH, generator=rng)
    padded = torch.zeros(8, longest, WIDTH)
    padded[:, :WORDS] = bare
    with torch.no_grad():
        first, then = (NORMS[kind](WIDTH).train()(x)[:, :WORDS] for x in (bare, padded))
    return ((then - first).norm() / first.norm()).item()


def _by_mates(kind: NormKind, size: int, seed: int) -> float:
    rng = torch.Generator().manual_seed(seed)
    sentence = torch.randn(WORDS, WIDTH, generator=rng)
    batches = [ragged_batch(sentence, size - 1, 32, rng) for _ in range(DRAWS)]
    return varies(kind, batches, WORDS)


def _measure(work: Workshop) -> Finding:
    padded, mates = dict[str, tuple[Mark, ...]](), dict[str, tuple[Mark, ...]]()
    for name, kind in NAMES.items():
        padded[name] = tuple(
            over_seeds(1 - WORDS / n, [padding_changes(kind, n, seed) for seed in work.seeds])
            for n in LONGEST
        )
        mates[name] = tuple(
            over_seeds(n, [_by_mates(kind, n, seed) for seed in work.seeds]) for n in BATCHES
        )
    worst, level = padded["BatchNorm"][-1], max(m.high for m in padded["LayerNorm"])
    few, many = mates["BatchNorm"][0], mates["BatchNorm"][-1]
    return Finding(
        verdict=f"BatchNorm gives the same words other values, by {100 * worst.mean:.0f} % where "
        f"{100 * worst.x:.0f} % of a batch is padding, and by {100 * few.mean:.0f} % from batch to "
        f"batch of two sentences ({100 * many.mean:.0f} % of {BATCHES[-1]}). LayerNorm: "
        f"{100 * level:.0f} % and {100 * mates['LayerNorm'][0].mean:.0f} %.",
        holds=worst.low > 0.1 and few.low > 0.1 and level < 1e-5,
        head=("", *NAMES),
        rows=(
            *(
                (f"{100 * b.x:.0f} % padding", f"{b.mean:.3f}", f"{one.mean:.1e}")
                for b, one in zip(*padded.values())
            ),
            *(
                (f"{b.x:.0f} sentences", f"{b.mean:.3f}", f"{one.mean:.1e}")
                for b, one in zip(*mates.values())
            ),
        ),
        lines=(
            _panel("The same batch, with padding behind it", "share of padding", padded),
            _panel("The same sentence, with other batch mates", "sentences in the batch", mates),
        ),
    )


def _panel(title: str, x_title: str, lines: dict[str, tuple[Mark, ...]]) -> LinePanel:
    y_title = "change of a word's values"
    return LinePanel(title=title, x_title=x_title, y_title=y_title, lines=lines)


CLAIM = LectureClaim(
    key="C9",
    title="LayerNorm against BatchNorm on ragged batches",
    claim="BatchNorm is hard to use with sequences: lengths differ, batches are small, and its "
    "means and variances are of the batch. LayerNorm takes them from each word by itself.",
    expect="Under BatchNorm a word's values change with the padding and with the other sentences "
    "of the batch, most in small batches; under LayerNorm not at all.",
    seconds=3,
    measure=_measure,
)
