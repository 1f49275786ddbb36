"""Beam search: between greedy and exhaustive, and never mixing up its hypotheses."""

from typing import Any

import pytest
import torch

from saccade.config import ModelConfig
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.protocol import Candidate, Hypothesis
from saccade.decode.search import search
from saccade.errors import ConfigError
from tests.models.zoo import LANGUAGE, LENGTHS, SOURCE, TRANSLATORS, begin, build, features

from .toy import Toy, extend

END, START = OURS.end, OURS.start

LIMITS = torch.tensor([7, 3, 5])
FIRST = torch.full((3,), START)
ALPHAS = (0.0, 0.7, 1.0)
MODELS = {**TRANSLATORS, **LANGUAGE}

Ranked = list[tuple[tuple[int, ...], float, bool]]


def ranked(sentences: dict[tuple[int, ...], float], alpha: float) -> Ranked:
    """Those that ended first, by the paper's score; words without their END."""
    scored = [
        (words, total / ((5 + len(words)) / 6) ** alpha, words[-1] == END)
        for words, total in sentences.items()
    ]
    return sorted(scored, key=lambda one: (not one[2], -one[1]))


def reference(toy: Toy, sentence: int, limit: int, size: int, alpha: float) -> Ranked:
    """Beam search with dictionaries."""
    live: dict[tuple[int, ...], float] = {(): 0.0}
    done: dict[tuple[int, ...], float] = {}
    for t in range(1, limit + 1):
        penalty = ((5 + t) / 6) ** alpha
        grown = {
            (*words, word): total + p
            for words, total in live.items()
            for word, p in enumerate(toy.log_p(sentence, words))
        }
        best = sorted(grown, key=grown.__getitem__, reverse=True)[: 2 * size]
        done |= {words: grown[words] for words in best[:size] if words[-1] == END}
        done = {words: done[words] for words, _, _ in ranked(done, alpha)[:size]}
        live = {words: grown[words] for words in [w for w in best if w[-1] != END][:size]}
        worst = min((score for _, score, _ in ranked(done, alpha)), default=0.0)
        if len(done) == size and worst >= max(live.values()) / penalty:
            break
        if t == limit:
            done |= live
    return ranked(done, alpha)[:size]


def agree(found: list[Hypothesis], expected: Ranked) -> None:
    assert [one.tokens for one in found] == [
        [word for word in words if word != END] for words, _, _ in expected
    ]
    assert [one.finished for one in found] == [ended for _, _, ended in expected]
    assert [one.score for one in found] == pytest.approx([s for _, s, _ in expected], abs=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_agrees_with_a_beam_search_written_with_dictionaries(size: int, alpha: float) -> None:
    for seed in range(4):
        toy, limits = Toy.draw(3, seed=seed), torch.tensor([8, 2, 5])
        beam = Beam(size=size, length_penalty=alpha)
        for i, found in enumerate(search(toy, *toy.start(), limits=limits, end=END, method=beam)):
            agree(found, reference(toy, i, int(limits[i]), size, alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_as_wide_as_the_language_finds_the_best_of_everything(alpha: float) -> None:
    toy, limits = Toy.draw(3, seed=1), torch.tensor([4, 1, 3])
    beam = Beam(size=4**4 + 4**3 + 4**2 + 4 + 1, length_penalty=alpha)
    for i, found in enumerate(search(toy, *toy.start(), limits=limits, end=END, method=beam)):
        agree(found, ranked(toy.everything(i, int(limits[i])), alpha))


def test_probabilities_of_everything_sum_to_one() -> None:
    toy = Toy.draw(1, seed=1)
    (found,) = search(toy, *toy.start(), limits=torch.tensor([3]), end=END, method=Beam(size=100))
    total = sum(torch.tensor(one.log_probability, dtype=torch.float64).exp() for one in found)
    assert len(found) == 4**3 + 4**2 + 4 + 1
    assert float(total) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_a_beam_of_one_is_greedy(config: ModelConfig) -> None:
    model = build(config, torch.float32)
    greedy = extend(model, begin(model), FIRST, limits=LIMITS)
    beam = Beam(size=1, length_penalty=0.7)
    found = search(model, begin(model), FIRST, limits=LIMITS, end=END, method=beam)
    assert [len(one) for one in found] == [1, 1, 1]
    for (narrow,), one in zip(found, greedy):
        assert (narrow.tokens, narrow.finished) == (one.tokens, one.finished)
        assert narrow.log_probability == pytest.approx(one.log_probability, abs=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy_in_a_language_with_ends(seed: int, alpha: float) -> None:
    toy, limits = Toy.draw(4, seed=seed), torch.tensor([8, 1, 5, 3])
    greedy = extend(toy, *toy.start(), limits=limits)
    beam = Beam(size=1, length_penalty=alpha)
    found = search(toy, *toy.start(), limits=limits, end=END, method=beam)
    assert [one.tokens for (one,) in found] == [one.tokens for one in greedy]
    assert any(one.finished for one in greedy)


@pytest.mark.slow
@pytest.mark.parametrize("config", TRANSLATORS.values(), ids=TRANSLATORS)
def test_a_batch_says_what_its_rows_say_alone(config: ModelConfig) -> None:
    model, beam = build(config, torch.float32), Beam(size=3)
    together = search(model, begin(model), FIRST, limits=LIMITS, end=END, method=beam)
    for i, found in enumerate(together):
        row = slice(i, i + 1)
        state = begin(model, SOURCE[row, : LENGTHS[i]], LENGTHS[row])
        (alone,) = search(model, state, FIRST[row], limits=LIMITS[row], end=END, method=beam)
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        scores = [one.score for one in found]
        assert [one.score for one in alone] == pytest.approx(scores, abs=1e-4)


def test_log_probability_is_that_of_the_words_and_the_score_that_of_the_paper() -> None:
    model = build(TRANSLATORS["transformer post sinusoids"])
    beam = Beam(size=4, length_penalty=0.7)
    for i, found in enumerate(
        search(model, begin(model), FIRST, limits=LIMITS, end=END, method=beam)
    ):
        for one in found:
            words = [START, *one.tokens, END][: len(one.tokens) + 1 + one.finished]
            row = slice(i, i + 1)
            known = features(model, torch.tensor([words[:-1]]), SOURCE[row], LENGTHS[row])
            log_p = model.output(known).log_softmax(dim=-1)[0]
            total = log_p[range(len(words) - 1), words[1:]].sum().item()
            assert one.log_probability == pytest.approx(total, abs=1e-5)
            assert one.score == pytest.approx(total / ((4 + len(words)) / 6) ** 0.7, abs=1e-5)


def test_every_step_tells_the_candidates_with_their_parents() -> None:
    toy, steps = Toy.draw(3, seed=1), list[dict[int, list[Candidate]]]()

    def tell(step: dict[int, list[Candidate]]) -> list[int]:
        steps.append(step)
        return []

    many = search(
        toy,
        *toy.start(),
        limits=torch.tensor([4, 4, 4]),
        end=END,
        method=Beam(size=3),
        on_step=tell,
    )
    for row, found in enumerate(many):
        texts: list[list[list[int]]] = [[[]]]
        ended: dict[tuple[int, ...], float] = {}
        for step in (step[row] for step in steps if row in step):
            live = [one for one in step if not one.ended]
            assert step[: len(live)] == live  # so that a parent is a place among them
            texts.append([[*texts[-1][one.parent], one.token] for one in live])
            for one in step[len(live) :]:
                ended[tuple(texts[-2][one.parent])] = one.log_probability
        for one in found:
            if one.finished:
                assert ended[tuple(one.tokens)] == pytest.approx(one.log_probability)


def test_a_sentence_that_nobody_waits_for_leaves_the_batch_and_the_others_stay() -> None:
    toy, limits = Toy.draw(3, seed=0), torch.tensor([6, 6, 6])
    toy.scores[..., END] = -50.0
    whole = search(toy, *toy.start(), limits=limits, end=END, method=Beam(size=4))
    toy.rows_seen.clear()
    steps = iter(range(6))
    many = search(
        toy,
        *toy.start(),
        limits=limits,
        end=END,
        method=Beam(size=4),
        on_step=lambda _: [1] if next(steps) == 2 else [],
    )
    assert toy.rows_seen == [12, 12, 12, 8, 8, 8]
    assert [many[0], many[1], many[2]] == [whole[0], [], whole[2]]


def test_hypotheses_are_sorted_best_first_and_finished_ones_before_the_rest() -> None:
    for seed in range(5):
        toy = Toy.draw(3, seed=seed)
        for found in search(
            toy, *toy.start(), limits=torch.tensor([6, 3, 2]), end=END, method=Beam(size=6)
        ):
            keys = [(not one.finished, -one.score) for one in found]
            assert keys == sorted(keys)
            assert len({tuple(one.tokens) for one in found if one.finished}) == sum(
                one.finished for one in found
            )


def test_limits_are_each_sentences_own_and_finished_sentences_leave_the_batch() -> None:
    toy, limits = Toy.draw(3, seed=0), torch.tensor([1, 3, 6])
    toy.scores[..., END] = -50.0  # nothing ends by itself
    many = search(toy, *toy.start(), limits=limits, end=END, method=Beam(size=4))
    assert [{len(one.tokens) for one in found} for found in many] == [{1}, {3}, {6}]
    assert not any(one.finished for found in many for one in found)
    assert toy.rows_seen == [12, 8, 8, 4, 4, 4]


def test_a_sentence_that_ended_early_leaves_the_batch() -> None:
    toy = Toy.draw(2, seed=0)
    toy.scores[0, :, :, :, END] = 50.0
    toy.scores[1, ..., END] = -50.0
    first, second = search(
        toy, *toy.start(), limits=torch.tensor([6, 6]), end=END, method=Beam(size=1)
    )
    assert (first[0].tokens, first[0].finished) == ([], True)
    assert (len(second[0].tokens), second[0].finished) == (6, False)
    assert toy.rows_seen == [2, 1, 1, 1, 1, 1]


def test_a_sentence_that_is_over_stays_as_it_is_while_it_waits_to_leave() -> None:
    limits = torch.tensor([2, 8, 8, 8, 8, 8, 8, 8, 1])  # one or two of nine are too few to leave
    for seed in range(4):
        toy, beam = Toy.draw(9, seed=seed), Beam(size=3)
        together = search(toy, *toy.start(), limits=limits, end=END, method=beam)
        for i, found in enumerate(together):
            alone = Toy(toy.scores[i : i + 1])
            (expected,) = search(
                alone, *alone.start(), limits=limits[i : i + 1], end=END, method=beam
            )
            assert found == expected
    assert toy.rows_seen[1] == 27


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "beam size=0 must be at least 1"),
        ({"length_penalty": -0.5}, "length_penalty=-0.5 must be 0 or more"),
    ],
)
def test_beams_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Beam(**options)
