"""The floor counts the arithmetic that must be done, neither more nor less."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from saccade.app.bench.floor import (
    Machine,
    decoding_floor,
    language_flops,
    measure_machine,
    rnn_flops,
    training_flops,
)
from saccade.app.bench.peers.nano_gpt import NanoGpt
from saccade.app.bench.peers.step_by_step import StepByStep
from saccade.app.bench.peers.torch_transformer import TorchTranslator
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_attention import ContextKind, RnnAttentionConfig
from saccade.models.text.transformer import TransformerConfig

TRANSFORMER = TransformerConfig(
    vocabulary=50, width=16, depth=2, heads=2, hidden=24, dropout=0.0, longest=16
)


def counted(model: torch.nn.Module, *batch: torch.Tensor) -> int:
    """What torch counts for a forward and a backward pass, attention by plain products."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*batch).backward()
    return counter.get_total_flops()


def words(rows: int, length: int) -> torch.Tensor:
    return torch.randint(4, 50, (rows, length), generator=torch.Generator().manual_seed(0))


def test_an_update_of_a_translator_takes_what_torch_counts() -> None:
    rows, s, t = 3, 7, 5
    expected = counted(TorchTranslator(TRANSFORMER), words(rows, s), words(rows, t), words(rows, t))
    unseen = rows * (t * t - t * (t + 1) // 2)  # torch computes what the causal mask then hides
    found = training_flops(TRANSFORMER, [s] * rows, [t] * rows)
    assert found + 3 * 4 * 16 * 2 * unseen == expected


def test_an_update_of_a_language_model_takes_what_torch_counts() -> None:
    config = GptConfig(vocabulary=50, width=16, depth=2, heads=2, longest=9, dropout=0.0)
    expected = counted(NanoGpt(config), words(2, 9), words(2, 9))
    unseen = 2 * (9 * 9 - 9 * 10 // 2)
    assert language_flops(config, 2, 9) + 3 * 4 * 16 * 2 * unseen == expected


@pytest.mark.parametrize("context", ["readout", "input"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_an_rnn_multiplies_each_word_with_the_weights_that_it_meets(
    cell: str, context: ContextKind
) -> None:
    config = RnnAttentionConfig(vocabulary=50, width=16, cell=cell, context=context)  # type: ignore[arg-type]
    model = StepByStep(config)

    def weights(*parts: torch.nn.Module) -> int:
        return sum(p.numel() for part in parts for p in part.parameters() if p.dim() == 2)

    attention = model.attention
    of_source = weights(model.encoder, attention.of_key)
    of_target = weights(model.rnn, attention.of_query, model.mix, model.readout)
    looks = 2 * 2 * 16 * 7 * 5  # a score and a sum for each pair
    assert rnn_flops(config, [7], [5]) == 2 * (7 * of_source + 5 * of_target) + looks


def test_a_step_of_decoding_reads_the_decoder_once_or_multiplies_it_with_every_row() -> None:
    model = TRANSFORMER.build()
    read = sum(
        weight.numel()
        for name, weight in model.named_parameters()
        if weight.dim() == 2
        and (name.startswith("decoder") or name == "embedding.weight")
        and "cross_attention.to_k" not in name  # the source's, projected before the first step
        and "cross_attention.to_v" not in name
    )
    slow_memory = Machine(flops=1e30, bandwidth=1000.0)
    slow_arithmetic = Machine(flops=1000.0, bandwidth=1e30)
    assert decoding_floor(TRANSFORMER, 6, 10, slow_memory, 2) == pytest.approx(10 * read * 2 / 1000)
    assert decoding_floor(TRANSFORMER, 6, 10, slow_arithmetic, 2) == pytest.approx(
        10 * 2 * 6 * read / 1000
    )


def test_the_machine_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.bench.floor.SIDE", {"cpu": 256})
    monkeypatch.setattr("saccade.app.bench.floor.COPIED", {"cpu": 1 << 20})
    machine = measure_machine(torch.device("cpu"), "fp32")
    assert 1e8 < machine.flops < 1e14
    assert 1e7 < machine.bandwidth < 1e13
