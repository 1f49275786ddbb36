"""Peers of the language model compute what ours computes, once they have its weights."""

import pytest
import torch
from torch import nn

from saccade.app.bench.ours import mean_loss
from saccade.app.bench.peers import hugging_face_gpt2, nano_gpt
from saccade.app.bench.sentences import language_task
from saccade.models.text.gpt import Gpt, GptConfig

CONFIG = GptConfig(vocabulary=60, width=32, depth=2, heads=4, longest=12, dropout=0.0)


def nano(ours: Gpt) -> nn.Module:
    theirs = nano_gpt.NanoGpt(CONFIG)
    nano_gpt.copy_weights(ours, theirs)
    return theirs


def hugging_face(ours: Gpt) -> nn.Module:
    theirs = hugging_face_gpt2.Gpt2Loss(CONFIG)
    hugging_face_gpt2.copy_weights(ours, theirs)
    return theirs


@pytest.mark.parametrize("peer", [nano, hugging_face])
def test_with_the_same_weights_the_loss_is_the_same(peer: object) -> None:
    assert callable(peer)
    torch.manual_seed(0)
    ours = CONFIG.build()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, mean=float(parameter.dim() == 1), std=0.3)
    task = language_task(rows=3, window=12, vocabulary=60)
    words = task.batch(0).words.padded()
    theirs = peer(ours).eval()(words, task.batch(0).labels.view_as(words))
    assert theirs.item() == pytest.approx(mean_loss(ours, task, torch.device("cpu")), abs=1e-5)
