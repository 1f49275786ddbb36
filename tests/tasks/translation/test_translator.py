"""A translator says the same however it is asked: looked at or not, alone or in a batch."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from saccade.attention.look.looking import looking
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.models import GptConfig, RnnAttentionConfig, TransformerConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.translator import Translator

TEXTS = [
    "The dog eats an apple.",
    "Le chien mange.",
    "They don't sing in Paris!",
    "A cat and a dog.",
    "In Paris they eat apples.",
    "apple",
]


def translator(config: TransformerConfig | RnnAttentionConfig | None = None) -> Translator:
    torch.manual_seed(0)
    words = Vocabulary.train(TEXTS * 3, size=300)
    sizes = {"vocabulary": len(words), "width": 32, "depth": 2}
    model: nn.Module = (config or TransformerConfig(**sizes, heads=2, hidden=32)).build()
    with torch.no_grad():
        for parameter in model.parameters():  # large enough for words to matter
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return Translator(model, words)


def said(tool: Translator, how: Decoding, texts: list[str], *, look: bool = False) -> list[str]:
    found = dict(tool.translate(texts, how, look=look))
    return [found[row].text for row in range(len(texts))]


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_looking_does_not_change_the_text(beam: int) -> None:
    tool, how = translator(), Decoding(beam=beam)
    assert said(tool, how, TEXTS) == said(tool, how, TEXTS, look=True)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("beam", [1, 4])
def test_what_a_text_becomes_does_not_depend_on_its_batch(beam: int, precision: str) -> None:
    tool, how = translator(), Decoding(beam=beam, precision=precision)  # type: ignore[arg-type]
    assert said(tool, how, TEXTS) == [said(tool, how, [text])[0] for text in TEXTS]


def test_eight_bits_are_for_transformers_alone() -> None:
    words = Vocabulary.train(TEXTS * 3, size=300)
    tool = translator(RnnAttentionConfig(vocabulary=len(words), width=16))
    assert len(said(tool, Decoding(beam=2), TEXTS[:2])) == 2
    message = "^precision='int8' is not to be had: RnnAttention decodes in float32"
    with pytest.raises(ConfigError, match=message):
        said(tool, Decoding(beam=2, precision="int8"), TEXTS[:2])


@pytest.mark.parametrize("how", [Decoding(beam=1), Decoding(beam=3), Decoding(sample=True, seed=3)])
def test_a_writer_writes_what_its_model_does(how: Decoding) -> None:
    torch.manual_seed(0)
    words = Vocabulary.train(TEXTS * 3, size=300)
    model = GptConfig(vocabulary=len(words), width=32, heads=2, depth=2, longest=64).build()
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    writer = Writer(model, words, LanguageSettings(unit="lines", level="bpe"))
    fast = writer.write("The dog", how, count=2, most_tokens=12)
    writer.decoders.decoder = lambda precision: model  # type: ignore[method-assign]
    assert [one.tokens for one in fast] == [
        one.tokens for one in writer.write("The dog", how, count=2, most_tokens=12)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["transformer", "rnn"])
@pytest.mark.parametrize("how", [Decoding(beam=1), Decoding(beam=3, n_best=3)])
def test_what_is_seen_of_a_translation_is_what_the_model_does_when_made_to_say_it(
    how: Decoding, kind: str
) -> None:
    words = Vocabulary.train(TEXTS * 3, size=300)
    rnn = RnnAttentionConfig(vocabulary=len(words), width=16)
    tool = translator(None if kind == "transformer" else rnn)
    plain, seen = (dict(tool.translate(TEXTS, how, look=look)) for look in (False, True))
    for row, text in enumerate(TEXTS):
        source = tool.encode(text)
        pairs = zip((plain[row], *plain[row].others), (seen[row], *seen[row].others), strict=True)
        for bare, one in pairs:
            assert (one.text, one.tokens, one.score) == (bare.text, bare.tokens, bare.score)
            assert bare.attention == {}
            said = [*one.tokens, tool.vocabulary.end] if one.finished else one.tokens
            target = torch.tensor([[tool.vocabulary.start, *said[:-1]]])
            with torch.no_grad(), looking(tool.model, only="cross") as trace:
                tool.model(source[None], torch.tensor([len(source)]), target)
            expected = trace.weights()
            assert one.attention.keys() == expected.keys() != set()
            for site, glance in one.attention.items():
                assert glance.weights is not None
                assert glance.weights.shape[2:] == (len(said), len(source))
                torch.testing.assert_close(glance.weights, expected[site], rtol=1e-4, atol=1e-5)
            later = tool.watched(bare)
            for site, glance in later.attention.items():
                torch.testing.assert_close(
                    glance.weights, one.attention[site].weights, rtol=1e-4, atol=1e-5
                )
            assert tool.watched(one) is one


@pytest.mark.parametrize("finished", [True, False])
def test_a_finished_translation_is_also_watched_at_its_end(finished: bool) -> None:
    tool = translator(None)
    ((_, found),) = tool.translate(TEXTS[:1], Decoding(beam=1))
    one = replace(found, finished=finished)
    said = [*one.tokens, tool.vocabulary.end] if finished else one.tokens
    source, target = tool.encode(one.source), torch.tensor([[tool.vocabulary.start, *said[:-1]]])
    with torch.no_grad(), looking(tool.model, only="cross") as trace:
        tool.model(source[None], torch.tensor([len(source)]), target)
    seen = tool.watched(one).attention
    for site, weights in trace.weights().items():
        torch.testing.assert_close(seen[site].weights, weights, rtol=1e-4, atol=1e-5)
