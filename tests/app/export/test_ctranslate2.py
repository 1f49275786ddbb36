"""The same model in CTranslate2's words: every kind that it can hold, and the rest refused."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.app.export.ctranslate2 import check, write_ctranslate2
from saccade.app.export.engine import CTranslate2Translator, CTranslate2Writer, options, rank
from saccade.data.tokens.vocabulary import CONTROL, OURS, Vocabulary
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError
from saccade.models import RnnAttentionConfig, TransformerConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Generated, Writer
from saccade.tasks.translation.translator import Translated, Translator
from tests.data.tokenizers_made import gpt_like
from tests.models import zoo

END, START = OURS.end, OURS.start

pytestmark = pytest.mark.slow

WORDS = Vocabulary.train(["un deux trois quatre cinq six sept"], level="words", size=11)
TEXTS = ["un deux trois quatre", "six", "cinq un", "sept six deux trois quatre cinq un", "deux six"]
TRANSFORMERS = [n for n, c in zoo.TRANSLATORS.items() if isinstance(c, TransformerConfig)]
GREEDY = Decoding(beam=1)


def both(name: str, folder: Path, **changed: Any) -> tuple[Translator, CTranslate2Translator]:
    """A model of the zoo with random weights, ours and exported."""
    model = zoo.build(replace(zoo.TRANSLATORS[name], **changed), torch.float32)
    write_ctranslate2(model, WORDS, folder, "float32")
    tool = Translator(model, WORDS)
    return tool, CTranslate2Translator(folder, tool)


def in_order(tool: Any, texts: list[str], how: Decoding) -> list[Translated]:
    found = dict(tool.translate(texts, how))
    return [found[row] for row in range(len(texts))]


@torch.no_grad()
def log_probability(tool: Translator, one: Translated) -> float:
    """Of a whole translation read at once: no search and no cache."""
    source = tool.encode(one.source)[None]
    words = torch.tensor([START, *one.tokens])
    features = tool.model(source, torch.tensor([source.shape[1]]), words[None])
    chosen = torch.tensor([*one.tokens, END])[: len(one.tokens) + one.finished]
    scores = tool.model.output(features[0]).log_softmax(dim=-1)  # type: ignore[operator]
    return float(scores[: len(chosen)].gather(1, chosen[:, None]).sum())


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_greedy_words_and_their_probabilities_are_ours(name: str, tmp_path: Path) -> None:
    ours, theirs = both(name, tmp_path)
    for one, other in zip(*(in_order(tool, TEXTS, GREEDY) for tool in (ours, theirs))):
        assert one.tokens == other.tokens
        assert one.finished == other.finished
        assert other.log_probability == pytest.approx(one.log_probability, abs=1e-4)
        assert other.score == pytest.approx(one.score, abs=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS[:4])
def test_a_search_by_probability_alone_finds_what_ours_finds(name: str, tmp_path: Path) -> None:
    ours, theirs = both(name, tmp_path)
    how = Decoding(beam=3, length_penalty=0.0)
    one, other = (in_order(tool, TEXTS, how) for tool in (ours, theirs))
    assert [each.tokens for each in one] == [each.tokens for each in other]


@pytest.mark.parametrize(("name", "alpha"), [("pre", 1.0), ("pre", 2.0), ("post", 1.0)])
def test_a_search_with_a_length_penalty_finds_what_ours_finds(
    name: str, alpha: float, tmp_path: Path
) -> None:
    ours, theirs = both(f"transformer {name} sinusoids", tmp_path, longest=300)
    rng = random.Random(0)
    words = WORDS.entries()[len(CONTROL) :]
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(60)]
    how = Decoding(beam=5, length_penalty=alpha)
    one, other = (in_order(tool, texts, how) for tool in (ours, theirs))
    assert [each.tokens for each in one] == [each.tokens for each in other]


@pytest.mark.parametrize(("alpha", "n_best", "asked"), [(0.0, 1, 1), (0.0, 2, 10), (0.6, 1, 10)])
def test_more_endings_are_asked_for_than_wanted_unless_the_first_must_be_the_best(
    alpha: float, n_best: int, asked: int
) -> None:
    chosen = options(Decoding(beam=5, length_penalty=alpha, n_best=n_best))
    assert chosen.get("num_hypotheses", 1) == asked


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_an_n_best_list_is_sorted_by_our_score_of_its_own_words(
    penalty: float, tmp_path: Path
) -> None:
    ours, theirs = both("transformer pre sinusoids", tmp_path)
    how = Decoding(beam=4, n_best=4, length_penalty=penalty)
    for first in in_order(theirs, TEXTS, how):
        every = [first, *first.others]
        assert len(every) == 4
        ranks = [(one.finished, one.score) for one in every]
        assert ranks == sorted(ranks, reverse=True)
        assert len({tuple(one.tokens) for one in every}) == 4
        for one in every:
            length = len(one.tokens) + one.finished
            exact = log_probability(ours, one)
            assert one.log_probability == pytest.approx(exact, abs=1e-4)
            assert one.score == pytest.approx(exact / ((5 + length) / 6) ** penalty, abs=1e-4)


@pytest.mark.parametrize("how", [GREEDY, Decoding(beam=3), Decoding(beam=3, length_penalty=0.0)])
def test_what_a_sentence_becomes_does_not_depend_on_its_batch(
    how: Decoding, tmp_path: Path
) -> None:
    _, theirs = both("transformer post sinusoids", tmp_path, longest=300)
    together = in_order(theirs, TEXTS, how)
    alone = [in_order(theirs, [text], how)[0] for text in TEXTS]
    assert [one.tokens for one in together] == [one.tokens for one in alone]


def test_a_sentence_has_its_own_limit_beside_a_longer_one(tmp_path: Path) -> None:
    ours, _ = both("transformer post sinusoids", tmp_path, longest=300)
    with torch.no_grad():  # it never ends: some word scores above zero
        ours.model.embedding.weight[END] = 0.0  # type: ignore[index]
    write_ctranslate2(ours.model, WORDS, tmp_path, "float32")
    theirs = CTranslate2Translator(tmp_path, ours)
    for how in (GREEDY, Decoding(beam=2)):
        for one, other in zip(*(in_order(tool, TEXTS, how) for tool in (ours, theirs))):
            assert not other.finished
            assert len(other.tokens) == len(one.tokens) == 2 * (len(one.source.split()) + 1) + 20


def test_sampled_translations_follow_their_seed(tmp_path: Path) -> None:
    _, theirs = both("transformer pre sinusoids", tmp_path)
    hows = [Decoding(sample=True, beam=1, seed=seed, temperature=2.0) for seed in (1, 1, 2)]
    once, again, other = ([one.tokens for one in in_order(theirs, TEXTS, how)] for how in hows)
    assert once == again
    assert once != other


def test_nothing_to_translate_is_no_translation(tmp_path: Path) -> None:
    _, theirs = both("transformer pre sinusoids", tmp_path)
    assert list(theirs.translate([], GREEDY)) == []


def test_quantising_leaves_the_model_alone_and_its_words_probable(tmp_path: Path) -> None:
    ours, _ = both("transformer pre sinusoids", tmp_path)
    before = {name: tensor.clone() for name, tensor in ours.model.state_dict().items()}
    write_ctranslate2(ours.model, WORDS, tmp_path, "int8")
    after = ours.model.state_dict()
    assert all(after[name].equal(tensor) for name, tensor in before.items())
    for one in in_order(CTranslate2Translator(tmp_path, ours), TEXTS, GREEDY):
        length = len(one.tokens) + one.finished
        assert abs(one.log_probability - log_probability(ours, one)) < 0.1 * length


def test_sentences_beyond_the_learnt_positions_are_refused_as_ours_are(tmp_path: Path) -> None:
    ours, theirs = both("transformer pre learned", tmp_path)
    for tool in (ours, theirs):
        with pytest.raises(DataError, match="24"):
            in_order(tool, ["un " * 40], GREEDY)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            RnnAttentionConfig(),
            "CTranslate2 runs Transformer and Gpt models, not RnnAttention; use --to onnx",
        ),
        (TransformerConfig(norm="batch"), "norm='batch': CTranslate2 has only layer norms; use"),
        (TransformerConfig(positions="fraction"), "positions='fraction' depend on the length"),
    ],
)
def test_what_it_cannot_hold_is_refused_with_a_way_out(config: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(config)


def writers(folder: Path) -> tuple[Writer, CTranslate2Writer]:
    model = zoo.build(zoo.LANGUAGE["gpt-nano"], torch.float32)
    write_ctranslate2(model, WORDS, folder, "float32")
    tool = Writer(model, WORDS, LanguageSettings(unit="lines", level="words"))
    return tool, CTranslate2Writer(folder, tool)


@pytest.mark.parametrize("prompt", ["", "un", "six deux trois"])
@pytest.mark.parametrize("how", [GREEDY, Decoding(beam=3, length_penalty=0.0)])
def test_a_language_model_goes_on_as_ours_does(prompt: str, how: Decoding, tmp_path: Path) -> None:
    ours, theirs = writers(tmp_path)
    (one,), (other,) = (tool.write(prompt, how, most_tokens=12) for tool in (ours, theirs))
    assert one.tokens == other.tokens
    assert other.text == one.text
    assert other.score == pytest.approx(one.score, abs=1e-4)


def test_a_tokenizer_that_knows_every_byte_needs_no_unknown_word(tmp_path: Path) -> None:
    words = Vocabulary(gpt_like())
    config = replace(zoo.LANGUAGE["gpt-nano"], vocabulary=len(words))
    model = zoo.build(config, torch.float32)
    write_ctranslate2(model, words, tmp_path, "float32")
    ours = Writer(model, words, LanguageSettings(unit="lines"))
    theirs = CTranslate2Writer(tmp_path, ours)
    (one,), (other,) = (tool.write("un ü", GREEDY, most_tokens=8) for tool in (ours, theirs))
    assert other.text == one.text


def test_samples_follow_their_seed_and_are_as_probable_as_we_say(tmp_path: Path) -> None:
    ours, theirs = writers(tmp_path)

    def draw(seed: int) -> list[Generated]:
        how = Decoding(sample=True, beam=1, seed=seed, temperature=2.0)
        return theirs.write("un", how, count=5, most_tokens=6)

    once, again, other = draw(1), draw(1), draw(2)
    assert [one.tokens for one in once] == [one.tokens for one in again]
    assert [one.tokens for one in once] != [one.tokens for one in other]
    for one in once:
        words = torch.tensor([*one.tokens, END])[: len(one.tokens) + one.finished]
        with torch.no_grad():
            features = ours.model(words[None, :-1])[0]
            scores = ours.model.output(features).log_softmax(dim=-1)  # type: ignore[operator]
        exact = scores[1:].gather(1, words[2:, None]).sum()  # after the start and the prompt
        assert one.log_probability == pytest.approx(float(exact), abs=1e-4)


@pytest.mark.parametrize("bold", [{"temperature": 1e-3}, {"top_k": 1}, {"top_p": 1e-3}])
def test_a_draw_without_choice_is_greedy(bold: dict[str, Any], tmp_path: Path) -> None:
    ours, theirs = writers(tmp_path)
    (expected,) = ours.write("un", GREEDY, most_tokens=12)
    for one in theirs.write("un", Decoding(sample=True, beam=1, **bold), count=3, most_tokens=12):
        assert one.tokens == expected.tokens


def test_what_ended_goes_before_what_was_cut_off_at_its_limit() -> None:
    rows, scores = [[5, 6, 7], [8, END], [END], [9, 9, 9]], [-1.0, -6.0, -5.0, -2.0]
    how = Decoding(beam=4, n_best=3, length_penalty=1.0)
    found = rank(rows, scores, how, penalty=0.0, end=END)
    assert [one.tokens for one in found] == [[], [8], [5, 6, 7]]
    assert [one.finished for one in found] == [True, True, False]
    assert [one.score for one in found] == pytest.approx([-5.0, -6 * 6 / 7, -1 * 6 / 8])


def test_a_prompt_that_fills_the_model_is_refused(tmp_path: Path) -> None:
    _, theirs = writers(tmp_path)
    with pytest.raises(DataError, match="the prompt has 41 tokens, but the model sees 24"):
        theirs.write("un " * 40, GREEDY)
