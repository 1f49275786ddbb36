"""The loop over single words computes what our RNN with attention computes."""

from typing import get_args

import pytest
import torch

from saccade.app.bench.ours import mean_loss, translations
from saccade.app.bench.peers.step_by_step import StepByStep, copy_weights
from saccade.app.bench.sentences import SentencePairs, translation_task
from saccade.blocks.recurrent.rnn import CellKind
from saccade.models.text.rnn_attention import ContextKind, RnnAttentionConfig

SENTENCES = SentencePairs.draw(5, vocabulary=60, source=(3, 9), target=(2, 8))


@pytest.mark.slow
@pytest.mark.parametrize("context", ["readout", "input"])
@pytest.mark.parametrize("cell", get_args(CellKind))
def test_with_the_same_weights_losses_and_words_are_the_same(
    cell: CellKind, context: ContextKind
) -> None:
    config = RnnAttentionConfig(vocabulary=60, width=16, cell=cell, context=context, dropout=0.0)
    torch.manual_seed(0)
    ours = config.build()
    with torch.no_grad():
        ours.readout.bias[:4] = -100.0
        ours.target_embedding.weight.mul_(20.0)
    theirs = StepByStep(config)
    copy_weights(ours, theirs)
    task = translation_task(SENTENCES, vocabulary=60)
    expected = mean_loss(ours, task, torch.device("cpu"))
    assert theirs(*SENTENCES.padded()).item() == pytest.approx(expected, abs=1e-5)
    words = translations(ours.eval(), SENTENCES.inputs, beam=1, words=10)()
    assert theirs.translate(SENTENCES.padded().source, 10).tolist() == words
    found = translations(ours.eval(), SENTENCES.inputs, beam=4, words=10)()
    assert theirs.search(SENTENCES.padded().source, 10, 4).tolist() == found
    assert theirs.search(SENTENCES.padded().source, 10, 1).tolist() == words
