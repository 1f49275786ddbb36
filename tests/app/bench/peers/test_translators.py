"""Peers of the Transformer compute what ours computes, once they have its weights."""

import pytest
import torch
from torch import nn

from saccade.app.bench.decode import talkative
from saccade.app.bench.ours import mean_loss, translations
from saccade.app.bench.peers import ctranslate, marian, torch_transformer
from saccade.app.bench.sentences import SentencePairs, numbered, translation_task, word
from saccade.models.text.transformer import Transformer, TransformerConfig

CPU = torch.device("cpu")
CONFIG = TransformerConfig(
    vocabulary=60, width=32, depth=2, heads=4, hidden=48, dropout=0.1, longest=32
)
SENTENCES = SentencePairs.draw(5, vocabulary=60, source=(3, 9), target=(2, 8))
STEPS = 12


def scrambled() -> Transformer:
    """Every weight random, also those that are born as zeros and ones."""
    torch.manual_seed(0)
    model = CONFIG.build()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=1.0, std=0.3)
    return model


def torch_peer(ours: Transformer) -> nn.Module:
    theirs = torch_transformer.TorchTranslator(CONFIG, smoothing=0.1)
    torch_transformer.copy_weights(ours, theirs)
    return theirs


def marian_peer(ours: Transformer) -> nn.Module:
    theirs = marian.make_marian(CONFIG, hidden_dropout=True)
    marian.copy_weights(ours, theirs)
    return marian.MarianLoss(theirs, smoothing=0.1)


@pytest.mark.parametrize("peer", [torch_peer, marian_peer])
def test_with_the_same_weights_the_loss_and_its_gradient_are_the_same(peer: object) -> None:
    assert callable(peer)
    ours = scrambled()
    theirs = peer(ours).eval()
    loss = theirs(*SENTENCES.padded())
    task = translation_task(SENTENCES, vocabulary=60, smoothing=0.1)
    assert loss.item() == pytest.approx(mean_loss(ours, task, CPU), abs=1e-5)
    loss.backward()
    batch = task.batch(0)
    (loss,) = task.losses(ours.eval(), batch).values()
    (loss / batch.tokens).backward()
    expected = ours.embedding.weight.grad
    found = next(p.grad for p in theirs.parameters() if p.shape == (60, 32))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_torch_drops_attention_weights_only_when_told_to() -> None:
    rates = {}
    for drop in (False, True):
        one = torch_transformer.TorchTranslator(CONFIG, drop_attention=drop)
        rates[drop] = {m.dropout for m in one.modules() if isinstance(m, nn.MultiheadAttention)}
    assert rates == {False: {0.0}, True: {0.1}}


def test_marian_drops_inside_its_mlps_only_when_told_to() -> None:
    rates = {drop: marian.make_marian(CONFIG, hidden_dropout=drop).config for drop in (True, False)}
    assert (rates[True].activation_dropout, rates[False].activation_dropout) == (0.1, 0.0)
    assert rates[True].attention_dropout == 0.0


@pytest.mark.parametrize("beam", [1, 4])
def test_every_engine_writes_the_same_text(beam: int) -> None:
    model = talkative(CONFIG, seed=0)
    expected = translations(model, SENTENCES.inputs, beam=beam, words=STEPS)()
    theirs = marian.make_marian(CONFIG, hidden_dropout=False).eval()
    marian.copy_weights(model, theirs)
    source = SENTENCES.padded().source
    assert marian.generate(theirs, source, beam=beam, steps=STEPS).tolist() == expected
    pytest.importorskip("ctranslate2")
    engine = ctranslate.CTranslator(model, numbered(60), "float32")
    words = [[word(token) for token in row.tolist()] for row in SENTENCES.sources]
    found = engine.translate(words, beam=beam, steps=STEPS)
    assert [[int(one) for one in row] for row in found] == expected


def test_talkative_weights_end_nothing_and_vary_their_words() -> None:
    model = talkative(CONFIG, seed=0)
    for beam in (1, 4):
        texts = translations(model, SENTENCES.inputs, beam=beam, words=STEPS)()
        assert [len(text) for text in texts] == [STEPS] * 5
        assert min(token for text in texts for token in text) >= 4
        assert sum(len(set(text)) for text in texts) / 5 > STEPS / 3
    assert len({tuple(text) for text in texts}) > 1  # the source matters
