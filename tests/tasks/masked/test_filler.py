"""Blanks: how they are written, what fills them, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.attention.look.glance import Keep
from saccade.data.tokens.vocabulary import Level, Vocabulary
from saccade.errors import ConfigError, DataError
from saccade.models.text.bert import BertConfig
from saccade.models.text.electra import ElectraConfig
from saccade.tasks.masked.filler import BlankFiller
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.masked.watched import rolled_out, watched_text
from tests.data.tokenizers_made import bert_like, roberta_like

TEXTS = ["The old castle is not here.", "They don't sing in Paris, and I sleep!"] * 3
SIZES: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2, "hidden": 16, "longest": 48}
BLANKS = "The old ___ is not [MASK], and ______ sleeps."


def filler(vocabulary: Vocabulary | None = None, *, level: Level = "bpe") -> BlankFiller:
    torch.manual_seed(0)
    words = vocabulary or Vocabulary.train(TEXTS, level=level, size=330, masks=True)
    model = BertConfig(vocabulary=len(words), **SIZES).build().double()
    return BlankFiller(model, words, MaskedSettings())


TOKENIZERS: dict[str, Callable[[], BlankFiller]] = {
    "byte pairs": filler,
    "words": lambda: filler(level="words"),
    "characters": lambda: filler(level="characters"),
    "BERT's": lambda: filler(Vocabulary(bert_like())),
    "RoBERTa's": lambda: filler(Vocabulary(roberta_like())),
}
every_tokenizer = pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)


@every_tokenizer
def test_each_blank_becomes_one_mask_and_nothing_else_changes(
    make: Callable[[], BlankFiller],
) -> None:
    tool = make()
    read = tool.blanks.read(BLANKS)
    assert [read.tokens[at] for at in read.at] == [tool.blanks.mask] * 3
    assert read.tokens.count(tool.blanks.mask) == 3
    plain = tool.blanks.read("The old cat is not cat, and cat sleeps.")
    (framed,) = tool.vocabulary.readings([("The old cat is not cat, and cat sleeps.",)])
    assert plain.tokens == framed.tokens
    assert plain.at == []
    first = tool.vocabulary.decode(read.tokens[: read.at[0]])
    assert first.strip().lower() == "the old"


@every_tokenizer
def test_what_stands_around_blanks_is_kept_to_the_letter(
    make: Callable[[], BlankFiller],
) -> None:
    tool = make()
    (found,) = tool.fill(["  The  OLD ___ is, well, not [MASK] here"], n_best=2)
    first, second = (words[0].word for words in found.blanks)
    assert found.text == f"  The  OLD {first} is, well, not {second} here"


def test_all_ways_to_write_a_blank_are_one() -> None:
    tool = filler()
    ways = ("___", "______", "[MASK]", "<hidden word>")
    assert len({tuple(tool.blanks.read(f"The {way} is old.").tokens) for way in ways}) == 1
    assert tool.blanks.read("The <mask> is __ old.").at == []
    assert len(filler(Vocabulary(roberta_like())).blanks.read("The <mask> is old.").at) == 1


@pytest.mark.slow
@given(st.lists(st.sampled_from(["The old ___.", "___", "I ___ in [MASK]!", BLANKS]), min_size=1))
def test_a_text_is_filled_alike_in_any_company(texts: list[str]) -> None:
    tool = filler()
    together = tool.fill(texts, n_best=3)
    for text, one in zip(texts, together):
        (alone,) = tool.fill([text], n_best=3)
        assert (one.given, one.text) == (text, alone.text)
        for ours, theirs in zip(one.blanks, alone.blanks):
            assert [word for word, _ in ours] == [word for word, _ in theirs]
            assert [p for _, p in ours] == pytest.approx([p for _, p in theirs])


def test_words_are_told_by_probability_and_are_no_special_tokens() -> None:
    tool = filler(level="words")
    ((words,),) = (one.blanks for one in tool.fill(["The old ___ here."], n_best=999))
    chances = [p for _, p in words]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1)
    assert len(words) == len(tool.vocabulary) - 5
    assert not {word for word, _ in words} & {"<hidden word>", "<unknown word>", "<end of text>"}


def test_the_model_reads_all_blanks_at_once() -> None:
    tool = filler()
    read = tool.read_blanks(BLANKS)
    rows, types = tool.rows([read])
    model: Any = tool.model
    with torch.no_grad():
        logits = model.output(model.transformed(model(rows, types)))[read.at]
    logits[:, [token for token in tool.vocabulary.special if token is not None]] = -torch.inf
    torch.testing.assert_close(tool.chances([read]), logits.float().softmax(dim=-1))


def test_an_electra_s_generator_fills_blanks_and_both_parts_are_watched() -> None:
    words = Vocabulary.train(TEXTS, size=330, masks=True)
    sizes = {**SIZES, "embedding_width": 8, "generator": 0.5}
    model = ElectraConfig(vocabulary=len(words), **sizes).build()
    tool = BlankFiller(model, words, MaskedSettings())
    (found,) = tool.fill(["The ___ is old."], n_best=4)
    assert len(found.blanks[0]) == 4
    read = tool.blanks.read("The ___ is old.")
    seen = watched_text(tool, read, keep=Keep(dense=64))
    assert {name.split(".")[0] for name in seen.sites} == {"discriminator", "generator_layers"}
    rolled = rolled_out(tool, read, keep=Keep(dense=64))
    assert set(rolled) == {"discriminator.rollout", "generator_layers.rollout"}


def test_a_rollout_mixes_the_layers_and_sums_to_one() -> None:
    tool = filler()
    read = tool.blanks.read(BLANKS)
    keep = Keep(dense=64)
    seen = watched_text(tool, read, keep=keep).sites
    mixture = torch.eye(len(read.tokens), dtype=torch.float64)
    for glance in seen.values():
        assert glance.weights is not None
        mixture = 0.5 * mixture + 0.5 * glance.weights[0].mean(dim=0).double() @ mixture
    (found,) = rolled_out(tool, read, keep=keep).values()
    assert found.weights is not None
    torch.testing.assert_close(found.weights[0, 0].double(), mixture, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mixture.sum(dim=-1), torch.ones(len(mixture)).double())


REFUSED = [
    (
        "no blank here",
        r'no blank to fill; write ___ or \[MASK\] in place of a word, as in "no ___"',
    ),
    ("", r'has no blank to fill; write ___ or \[MASK\] in place of a word, as in "The ___'),
    ("un___able", "has a blank within a word; a blank stands for a whole one: put spaces around"),
    ("word " * 60 + "___", "the text has .* tokens, but the model sees 48; shorten it"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_cannot_be_filled_is_refused(text: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        filler().fill([text])


def test_n_best_and_a_tokenizer_without_a_mask_are_refused() -> None:
    with pytest.raises(ConfigError, match="n_best=0 must be at least 1"):
        filler().fill(["___"], n_best=0)
    with pytest.raises(ConfigError, match=r"no token for hidden words, such as \[MASK\]"):
        filler(Vocabulary.train(TEXTS, size=330))
