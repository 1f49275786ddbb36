"""The bench of masked language modelling: theirs, with our weights, hide what ours hide."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.app.bench.floor import Machine, masked_flops
from saccade.app.bench.peers.bert import MaskedWordLoss, copy_weights, make_bert
from saccade.app.bench.pretrain import PretrainBench, padded
from saccade.app.bench.sentences import masked_task
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.text.bert import Bert, BertConfig
from saccade.tasks.cross_entropy import IGNORED

TINY = BertConfig(vocabulary=60, width=16, depth=2, heads=2, hidden=24, longest=32)
QUICK = ["pretrain", "--device", "cpu", "--seconds", "0", "--sentences", "3", "--longest", "24"]
QUICK += ["--vocabulary", "60", "--width", "16", "--depth", "1", "--heads", "2", "--hidden", "24"]


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))


@torch.no_grad()
def shaken(config: BertConfig) -> Bert:
    """Weights of which none is near zero, so that each tells in the result."""
    torch.manual_seed(0)
    model = config.build().eval()
    for parameter in model.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def test_all_sentences_are_one_batch_of_the_lengths_asked_for() -> None:
    task = masked_task(40, lengths=(5, 9), vocabulary=60)
    lengths = task.batch(0).rows.lengths
    assert task.batches_per_epoch == 1
    assert (len(lengths), int(lengths.min()), int(lengths.max())) == (40, 5, 9)
    assert len(task.vocabulary) == 60


def test_the_rectangle_holds_the_same_words_and_hides_the_same() -> None:
    batch = masked_task(12, lengths=(5, 20), vocabulary=60).batch(0)
    words, real, labels = padded(batch)
    lengths = batch.rows.lengths.tolist()
    assert real.sum(dim=1).tolist() == lengths
    ends = batch.rows.starts.tolist()
    for row, (start, length) in enumerate(zip(ends, lengths)):
        here = (batch.at >= start) & (batch.at < start + length)
        truth = torch.full((words.shape[1],), IGNORED)
        truth[batch.at[here] - start] = batch.labels[here]
        assert labels[row].equal(truth)
        assert words[row, :length].equal(batch.rows.tokens[start : start + length])


@pytest.mark.slow  # to import them
@torch.no_grad()
def test_theirs_with_our_weights_has_our_loss_and_with_others_another() -> None:
    task = masked_task(12, lengths=(5, 20), vocabulary=TINY.vocabulary)
    ours, theirs = shaken(TINY), make_bert("BertForMaskedLM", TINY)
    batch = task.batch(0)
    loss = sum(task.losses(ours, batch).values()) / batch.tokens
    peer = MaskedWordLoss(theirs).eval()
    assert abs(peer(*padded(batch)) - loss) > 0.1
    copy_weights(ours, theirs)
    torch.testing.assert_close(peer(*padded(batch)), loss, rtol=1e-5, atol=1e-5)


@pytest.mark.slow  # to import them
@torch.no_grad()
def test_a_classifier_with_our_weights_gives_our_scores() -> None:
    config = replace(TINY, head="text", labels=3)
    ours = shaken(config)
    theirs = make_bert("BertForSequenceClassification", config).eval()
    copy_weights(ours, theirs)
    batch = masked_task(7, lengths=(5, 20), vocabulary=TINY.vocabulary).batch(0)
    words, real, _ = padded(batch)
    types = torch.arange(len(batch.rows.tokens)) % 2
    scores = ours.scores(ours(batch.rows, types), batch.rows)[: len(words)]
    there = theirs(input_ids=words, attention_mask=real, token_type_ids=batch.rows.rectangle(types))
    torch.testing.assert_close(there.logits, scores, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_an_update_is_raced_in_real_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_command([*QUICK, "--no-compiled", "--json"]) == 0
    (race,) = json.loads(capsys.readouterr().out)["results"]
    rows: list[dict[str, Any]] = race["rows"]
    assert [row["name"] for row in rows] == ["saccade", "huggingface", "huggingface-default"]
    assert race["job"]["against"] == "huggingface"
    assert all(row["agreement"] < 1e-5 for row in rows[1:])
    lengths = masked_task(3, lengths=(16, 24), vocabulary=60).batch(0).rows.lengths
    assert race["job"]["tokens"] == int(lengths.sum())
    assert rows[1]["padding"] == pytest.approx(1 - int(lengths.sum()) / (3 * int(lengths.max())))


def test_peers_that_are_not_there_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.app.bench.race.find_spec", lambda name: None)
    bench_command([*QUICK, "--no-compiled", "--peers", "huggingface"])
    said = capsys.readouterr().out
    assert "not measured: huggingface (transformers is not installed)" in said


def test_the_floor_counts_what_must_be_computed() -> None:
    alone = masked_flops(TINY, [1], hidden=0)
    assert alone == 6 * 2 * (4 * 16**2 + 2 * 16 * 24) + 12 * 16 * 2
    assert masked_flops(TINY, [1], hidden=5) - alone == 6 * 5 * (16**2 + 16 * 60)
    grown = masked_flops(TINY, [4], hidden=0) - 4 * alone
    assert grown == 12 * 16 * 2 * (16 - 4)  # pairs that look at each other


def test_sizes_fit_the_device_and_nonsense_is_refused() -> None:
    base = PretrainBench(device="cpu", size="base").config
    assert (base.width, base.depth, base.vocabulary, base.dropout) == (768, 12, 30522, 0.1)
    assert PretrainBench(device="cpu", longest=700).config.longest == 700
    with pytest.raises(ConfigError, match="shortest=9, longest=8: must be over 2, and longest"):
        PretrainBench(shortest=9, longest=8)
    with pytest.raises(ConfigError, match="peers=fairseq is not one of huggingface"):
        PretrainBench(peers="fairseq")
