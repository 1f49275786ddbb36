"""Scores of pairs that stream are those of all pairs at once."""

from typing import Any

import pytest

from saccade.data.tokens.words import length_in_words
from saccade.decode.engine import Decoding
from saccade.errors import DataError
from saccade.metrics.translation import score_translations
from saccade.tasks.figures import loss_figures
from saccade.tasks.translation import scored_pairs
from saccade.tasks.translation.evaluate import Comparing, evaluate_translations
from saccade.tasks.translation.scored_pairs import ScoredPairs
from saccade.tasks.translation.task import pairs_loss
from tests.tasks.translation.test_translator import TEXTS, said, translator


@pytest.mark.parametrize("window", [2, 2048])
def test_sums_over_windows_are_the_scores_of_the_corpus(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scored_pairs, "WINDOW", window)
    tool, how = translator(), Decoding(beam=1)
    texts = said(tool, how, TEXTS)
    references = [*texts[:3], *TEXTS[3:]]
    pairs, heard = list(zip(TEXTS, references)), list[tuple[int, int]]()
    found = evaluate_translations(
        tool,
        ScoredPairs(lambda: iter(pairs), []),
        how=how,
        comparing=Comparing(),
        progress=lambda done, total: heard.append((done, total)),
    )
    words = list(map(length_in_words, TEXTS))
    expected = vars(score_translations(texts, references, words))
    assert {name: found[name] for name in expected} == expected
    loss, tokens = pairs_loss(tool.model, tool.vocabulary, pairs, tool.device)  # type: ignore[arg-type]
    figures = loss_figures(loss / tokens)
    assert {name: found[name] for name in figures} == pytest.approx(figures, rel=1e-6)
    assert found["exact"] == sum(a == b for a, b in zip(texts, references)) / len(texts)
    assert (found["sentences"], heard[-1]) == (len(TEXTS), (len(TEXTS), len(TEXTS)))


def test_pairs_that_are_too_long_for_the_model_are_left_out_and_counted() -> None:
    tool, long = translator(), " ".join(TEXTS * 40)
    given: dict[str, Any] = {"how": Decoding(beam=1), "comparing": Comparing()}
    some = [(TEXTS[0], TEXTS[1]), (TEXTS[0], long), (long, TEXTS[1]), (TEXTS[2], TEXTS[3])]
    found = evaluate_translations(tool, ScoredPairs(lambda: iter(some), []), **given)
    kept = [some[0], some[3]]
    expected = evaluate_translations(tool, ScoredPairs(lambda: iter(kept), []), **given)
    assert found["left_out"] == 2
    assert "left_out" not in expected
    same = expected.keys() - {"seconds"}
    assert {name: found[name] for name in same} == {name: expected[name] for name in same}
    with pytest.raises(DataError, match="each of the 2 pairs has a side of 1024 tokens or more"):
        evaluate_translations(tool, ScoredPairs(lambda: iter(some[1:3]), []), **given)
