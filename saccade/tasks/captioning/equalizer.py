"""The Equalizer: say which group only where the image shows it, not where the rest suggests it.

Hendricks et al. 2018, arXiv:1803.09797. Departs from the published code, whose confusion term is
always zero (it asks for words that are of both groups at once): here a step counts if its word is
of either group. Terms are means over the steps that they concern, so that their weights do not
depend on the size of a batch; of more than two groups every pair counts.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.metrics.captioning import caption_words
from saccade.metrics.outcomes import WordGroup, read_groups
from saccade.models.caption.captioner import CaptionHidden
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy

ROUND = 64  # so many words are asked about, or a multiple


@dataclass(frozen=True, kw_only=True)
class EqualizerSettings:
    """Which words say a group, and what is asked of them; weights of 0 ask nothing.

    Args:
        groups: the words of each group, with commas between: man,boy woman,girl. A group is called
            by its first word.
        confusion: weight of saying either group alike where the figure is hidden; 10 as published.
        confident: weight of not saying the other group where it is not; 1 as published.
        masked: weight of the other words' cross-entropy on hidden images; 1 as published.
        upweight: so many times a group's word counts in cross-entropy (a baseline; 1 is once).
        epsilon: added to what is divided by.
    """

    groups: tuple[str, ...] = ("knight", "wizard")
    confusion: float = 0.0
    confident: float = 0.0
    masked: float = 0.0
    upweight: float = 1.0
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        read_groups(self.groups)
        if min(self.confusion, self.confident, self.masked, self.upweight) < 0:
            raise ConfigError("confusion, confident, masked and upweight must be 0 or more")
        if self.epsilon <= 0:
            raise ConfigError(f"epsilon={self.epsilon} must be over 0")

    @property
    def hides(self) -> bool:
        """Whether it needs images with the figure hidden."""
        return self.confusion > 0 or self.masked > 0

    @property
    def asks(self) -> bool:
        """Whether it asks anything at all."""
        return self.hides or self.confident > 0 or self.upweight != 1


class Concern(NamedTuple):
    """Where in a batch a group's word is due, and the images with the figures hidden.

    `table` gives the group of each word of the vocabulary, and the number of groups for the rest.
    """

    table: Int[Tensor, " V"]
    steps: Int[Tensor, " steps"]  # places among all words
    unseen: Int[Tensor, " unseen"]  # those of them whose image has its figure hidden
    hidden: UInt8[Tensor, "B 3 H W"] | None

    def to(self, device: torch.device) -> "Concern":
        table, steps, unseen = (x.to(device, non_blocking=True) for x in self[:3])
        hidden = None if self.hidden is None else self.hidden.to(device, non_blocking=True)
        return Concern(table, steps, unseen, hidden)

    def pinned(self) -> "Concern":
        table, steps, unseen = (x.pin_memory() for x in self[:3])
        return Concern(
            table, steps, unseen, None if self.hidden is None else self.hidden.pin_memory()
        )

    def filled(self, places: Int[Tensor, " words"], filler: int) -> "Concern":
        """With the words moved to these places, and as many as many batches have: `filler` is the
        place of one without a label.
        """
        steps, unseen = (
            F.pad(places[x], (0, -len(x) % ROUND), value=filler) for x in (self.steps, self.unseen)
        )
        return self._replace(steps=steps, unseen=unseen)

    @property
    def shape(self) -> tuple[int, int, bool]:
        """All that a kernel's launch depends on, beside the batch's own."""
        return len(self.steps), len(self.unseen), self.hidden is not None


def group_table(groups: tuple[WordGroup, ...], vocabulary: Vocabulary) -> Int[Tensor, " V"]:
    """The group that each word of the vocabulary says, and the number of groups for the rest.

    "man," says what "man" does.
    """
    known = {word: number for number, group in enumerate(groups) for word in group.words}
    found = [known.get(" ".join(caption_words(e)), len(groups)) for e in vocabulary.entries()]
    for number, group in enumerate(groups):
        if number not in found:
            words = ", ".join(group.words)
            raise ConfigError(f"no caption has a word of the group {words}; see equalizer.groups")
    return torch.tensor(found)


def concern(
    table: Int[Tensor, " V"],
    captions: Rows,
    of: Int[Tensor, " R"],
    labels: Int[Tensor, " words"],
    hidden: tuple[UInt8[Tensor, "B 3 H W"], Bool[Tensor, " B"]] | None,
) -> Concern:
    """What there is to ask of a batch; `hidden` are images, and whether anything is hidden."""
    steps = ((table[labels.clamp(min=0)] < table.max()) & (labels != IGNORED)).nonzero()[:, 0]
    if hidden is None:
        return Concern(table, steps, steps[:0], None)
    image = of.repeat_interleave(captions.lengths)  # of each word
    return Concern(table, steps, steps[hidden[1][image[steps]]], hidden[0])


def group_probabilities(
    scores: Float[Tensor, "n V"], table: Int[Tensor, " V"], groups: int
) -> Float[Tensor, "n groups"]:
    """How probable a word of each group is.

    p(group) = Σ p(word) over the words of the group
    """
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    found = exact.new_zeros(len(exact), groups + 1)
    return found.index_add(1, table, exact.softmax(dim=1))[:, :-1]


def confusion(p: Float[Tensor, "n groups"]) -> Float[Tensor, " n"]:
    """How far hidden figures are from being either: nothing is left to tell by.

    |p(a) − p(b)|        the mean over pairs of groups
    """
    apart = (p[:, :, None] - p[:, None, :]).abs()
    return apart.sum(dim=(1, 2)) / (p.shape[1] * (p.shape[1] - 1))


def confidence(
    p: Float[Tensor, "n groups"], group: Int[Tensor, " n"], epsilon: float
) -> Float[Tensor, " n"]:
    """How probable other groups are beside the true one.

    Σ_others p / (p(true) + ε)
    """
    true = p.gather(1, group[:, None])[:, 0]
    return (p.sum(dim=1) - true) / (true + epsilon)


def terms(
    model: nn.Module,
    states: CaptionHidden,
    captions: Rows,
    of: Int[Tensor, " R"],
    labels: Int[Tensor, " words"],
    asked: Concern,
    settings: EqualizerSettings,
) -> Float[Tensor, ""]:
    """What is added to the summed cross-entropy of a batch.

        words · (β mean confusion(I′) + μ mean confident(I) + mean CE(I′, other words)) + …

    I′ is the image with the figure hidden. Means count as much as the mean loss of a word.
    """
    layer: OutputLayer = model.output  # type: ignore[assignment]
    groups = len(settings.groups)
    scores, due = layer(states.hidden[asked.steps]), labels[asked.steps]
    p, group = group_probabilities(scores, asked.table, groups), asked.table[due.clamp(min=0)]
    total = settings.confident * _mean(
        confidence(p, group.clamp(max=groups - 1), settings.epsilon), due
    )
    if asked.hidden is not None:
        with norms_left_alone(model):
            blind: CaptionHidden = model(asked.hidden, captions, of)
        unsure = group_probabilities(layer(blind.hidden[asked.unseen]), asked.table, groups)
        total = total + settings.confusion * _mean(confusion(unsure), labels[asked.unseen])
        others = labels.index_fill(0, asked.steps, IGNORED)
        if settings.masked:
            loss = summed_cross_entropy(blind.hidden, layer, others)
            total = total + settings.masked * loss / (others != IGNORED).sum().clamp(min=1)
    total = (labels != IGNORED).sum() * total
    if settings.upweight != 1:
        more = F.cross_entropy(scores, due, reduction="sum", ignore_index=IGNORED)
        total = total + (settings.upweight - 1) * more
    return total


@contextmanager
def norms_left_alone(model: nn.Module) -> Generator[None]:
    """Let hidden images pass without a trace in the statistics that batch norms keep."""
    norms = [part for part in model.modules() if isinstance(part, nn.BatchNorm2d)]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, before):
            norm.momentum = momentum


def _mean(x: Float[Tensor, " n"], labels: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    """Over the words that have a label; zero where there is none."""
    real = labels != IGNORED
    return x.where(real, 0.0).sum() / real.sum().clamp(min=1)
