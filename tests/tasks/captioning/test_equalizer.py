"""The Equalizer's terms against their equations, by hand and in float64."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.metrics.outcomes import read_groups
from saccade.models.caption.captioner import CaptionHidden
from saccade.tasks.captioning.equalizer import (
    Concern,
    EqualizerSettings,
    concern,
    confidence,
    confusion,
    group_probabilities,
    group_table,
    norms_left_alone,
    terms,
)
from saccade.tasks.cross_entropy import IGNORED

WORDS = 7
TABLE = torch.tensor([2, 2, 2, 2, 0, 1, 0])  # words 4 and 6 say the first group, 5 the second
ROWS = Rows.of(torch.tensor([1, 3, 4, 1, 3, 5, 1, 3]), torch.tensor([3, 3, 2]))
OF = torch.tensor([0, 1, 1])
LABELS = torch.tensor([3, 4, 2, 3, 5, 2, 6, 2])
SETTINGS = EqualizerSettings(confusion=10.0, confident=1.0, masked=1.0)


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Teller(nn.Module):
    """Knows of each word what it was told to, more or less of it as pictures are bright."""

    def __init__(self, known: Tensor | None = None, weight: Tensor | None = None) -> None:
        super().__init__()
        self.known = randn(len(LABELS), 5, seed=0).requires_grad_() if known is None else known
        self.weight = randn(WORDS, 5, seed=1) if weight is None else weight
        self.norm = nn.BatchNorm2d(3)

    @property
    def output(self) -> OutputLayer:
        return OutputLayer(self.weight)

    def forward(self, pictures: Tensor, captions: Rows, of: Tensor) -> CaptionHidden:
        self.norm(pictures.float())
        bright = pictures.double().flatten(1).mean(dim=1)[of].repeat_interleave(captions.lengths)
        return CaptionHidden(self.known * bright[:, None] / 100)


def asked(*, hidden: bool = True, gone: tuple[bool, bool] = (True, True)) -> Concern:
    pictures = torch.full((2, 3, 2, 2), 50, dtype=torch.uint8)
    return concern(TABLE, ROWS, OF, LABELS, (pictures, torch.tensor(gone)) if hidden else None)


def added(settings: EqualizerSettings, about: Concern, model: Teller | None = None) -> Tensor:
    teller = model or Teller()
    told = CaptionHidden(teller.known)
    return terms(teller, told, ROWS, OF, LABELS, about, settings)


def probabilities(known: Tensor, weight: Tensor) -> list[list[float]]:
    """P(group) at each step, word by word."""
    found: list[list[float]] = []
    for x in known:
        odds = [float((x @ w).exp()) for w in weight]
        total = sum(odds)
        found.append([(odds[4] + odds[6]) / total, odds[5] / total])
    return found


def test_steps_are_those_of_either_group_and_not_of_both_at_once() -> None:
    assert asked().steps.tolist() == [1, 4, 6]
    assert asked().unseen.tolist() == [1, 4, 6]


def test_steps_of_pictures_with_nothing_hidden_are_not_confused() -> None:
    assert asked(gone=(True, False)).unseen.tolist() == [1]
    assert asked(gone=(False, True)).unseen.tolist() == [4, 6]


def test_each_term_agrees_with_its_equation() -> None:
    model = Teller()
    seen = probabilities(model.known.detach(), model.weight.detach())
    blind = probabilities(model.known.detach() / 2, model.weight.detach())
    unsure = sum(abs(blind[i][0] - blind[i][1]) for i in (1, 4, 6)) / 3
    epsilon = SETTINGS.epsilon
    wrong = (
        seen[1][1] / (seen[1][0] + epsilon)
        + seen[4][0] / (seen[4][1] + epsilon)
        + seen[6][1] / (seen[6][0] + epsilon)
    ) / 3
    scores = (model.known.detach() / 2 @ model.weight.T).log_softmax(dim=1)
    others = -sum(float(scores[i, LABELS[i]]) for i in (0, 2, 3, 5, 7)) / 5
    for weights, expected in (
        ({"confusion": 1.0}, unsure),
        ({"confident": 1.0}, wrong),
        ({"masked": 1.0}, others),
        (
            {"confusion": 10.0, "confident": 2.0, "masked": 3.0},
            10 * unsure + 2 * wrong + 3 * others,
        ),
    ):
        settings = EqualizerSettings(**weights)
        found = added(settings, asked(hidden=settings.hides), model)
        assert found.item() == pytest.approx(len(LABELS) * expected)


def test_a_word_that_weighs_more_adds_its_own_cross_entropy() -> None:
    model = Teller()
    scores = (model.known.detach() @ model.weight.T).log_softmax(dim=1)
    expected = -9 * sum(float(scores[i, LABELS[i]]) for i in (1, 4, 6))
    found = added(EqualizerSettings(upweight=10.0), asked(hidden=False), model)
    assert found.item() == pytest.approx(expected)


def test_the_confusion_term_is_alive() -> None:
    model = Teller()
    added(EqualizerSettings(confusion=1.0), asked(), model).backward()
    assert model.known.grad is not None
    moved = model.known.grad.abs().sum(dim=1).gt(0).nonzero()[:, 0]
    assert moved.tolist() == [1, 4, 6]


@given(seed=st.integers(0, 99), n=st.integers(1, 4), groups=st.integers(2, 4))
def test_confusion_is_zero_for_equals_and_does_not_care_which_group_is_which(
    seed: int, n: int, groups: int
) -> None:
    p = randn(n, groups, seed=seed).softmax(dim=1)
    assert confusion(p.mean(dim=1, keepdim=True).expand(n, groups)).eq(0).all()
    torch.testing.assert_close(confusion(p), confusion(p.flip(1)))
    if groups == 2:
        torch.testing.assert_close(confusion(p), (p[:, 0] - p[:, 1]).abs())


@given(seed=st.integers(0, 99))
def test_confidence_falls_as_the_true_group_rises(seed: int) -> None:
    p = 0.4 * torch.rand(5, 2, generator=torch.Generator().manual_seed(seed)).double() + 0.05
    group = torch.arange(5) % 2
    before = confidence(p, group, 1e-5)
    more = p.scatter_add(1, group[:, None], torch.full((5, 1), 0.05).double())
    worse = p.scatter_add(1, 1 - group[:, None], torch.full((5, 1), 0.05).double())
    assert (confidence(more, group, 1e-5) < before).all()
    assert (confidence(worse, group, 1e-5) > before).all()


@pytest.mark.parametrize("weights", [{"confusion": 10.0}, {"confident": 1.0}])
def test_gradients_agree_with_finite_differences(weights: dict[str, float]) -> None:
    settings = EqualizerSettings(**weights)
    about = asked(hidden=settings.hides)

    def loss(known: Tensor, weight: Tensor) -> Tensor:
        return added(settings, about, Teller(known, weight))

    inputs = (
        randn(len(LABELS), 5, seed=5).requires_grad_(),
        randn(WORDS, 5, seed=6).requires_grad_(),
    )
    assert torch.autograd.gradcheck(loss, inputs, check_undefined_grad=False)


def test_probabilities_of_groups_add_up_their_words() -> None:
    scores = randn(3, WORDS, seed=3)
    p = scores.softmax(dim=1)
    expected = torch.stack([p[:, 4] + p[:, 6], p[:, 5]], dim=1)
    torch.testing.assert_close(group_probabilities(scores, TABLE, 2), expected)


def test_terms_do_not_depend_on_the_size_of_the_batch() -> None:
    """Twice the same batch costs twice as much: as much for each word."""
    model = Teller()
    once = added(SETTINGS, asked(), model)
    twice = Rows.of(ROWS.tokens.repeat(2), ROWS.lengths.repeat(2))
    of, labels = torch.cat([OF, OF + 2]), LABELS.repeat(2)
    pictures = torch.full((4, 3, 2, 2), 50, dtype=torch.uint8)
    about = concern(TABLE, twice, of, labels, (pictures, torch.ones(4, dtype=torch.bool)))
    model.known = model.known.detach().repeat(2, 1)
    found = terms(model, CaptionHidden(model.known), twice, of, labels, about, SETTINGS)
    torch.testing.assert_close(found, 2 * once)


def test_a_batch_without_a_group_or_without_labels_adds_nothing_wrong() -> None:
    model = Teller()
    none = torch.full_like(LABELS, IGNORED)
    hidden = torch.zeros(2, 3, 2, 2, dtype=torch.uint8), torch.ones(2, dtype=torch.bool)
    about = concern(TABLE, ROWS, OF, none, hidden)
    found = terms(model, CaptionHidden(model.known), ROWS, OF, none, about, SETTINGS)
    assert found.item() == 0


def test_hidden_pictures_leave_no_trace_in_batch_norms() -> None:
    model = Teller()
    before: Any = model.norm.running_mean
    before = before.clone()
    added(SETTINGS, asked(), model)
    assert torch.equal(before, model.norm.running_mean)  # type: ignore[arg-type]
    assert model.norm.momentum == 0.1
    with pytest.raises(ValueError, match="x"), norms_left_alone(model):
        raise ValueError("x")
    assert model.norm.momentum == 0.1


def test_words_are_found_in_the_vocabulary_with_what_clings_to_them() -> None:
    vocabulary = Vocabulary.train(["A man , a man. the Man, a woman"], level="words", size=99)
    table = group_table(read_groups(("man,boy", "woman")), vocabulary)
    said = {word: int(table[number]) for number, word in enumerate(vocabulary.entries())}
    assert {word for word, group in said.items() if group == 0} == {"man", "man.", "Man,"}
    assert {word for word, group in said.items() if group == 1} == {"woman"}


def test_a_group_that_no_caption_names_is_refused() -> None:
    vocabulary = Vocabulary.train(["a man"], level="words", size=99)
    with pytest.raises(ConfigError, match="no caption has a word of the group woman, girl"):
        group_table(read_groups(("man", "woman,girl")), vocabulary)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"confusion": -1.0}, "0 or more"),
        ({"epsilon": 0.0}, "over 0"),
        ({"groups": ("man",)}, "two lists"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        EqualizerSettings(**values)
