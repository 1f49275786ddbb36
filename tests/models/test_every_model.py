"""The laws that every model obeys, whatever its options."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from saccade.config import ModelConfig, from_dict, to_dict
from saccade.data.tokens.vocabulary import OURS
from saccade.errors import ConfigError
from saccade.models import FAMILIES, PRESETS, TransformerConfig, family, preset
from tests.marks import one_fast_of_each

from .zoo import (
    LANGUAGE,
    LENGTHS,
    READERS,
    SOME_READERS,
    SOURCE,
    TARGET,
    TRANSLATORS,
    VOCABULARY,
    begin,
    build,
    features,
)

PAD = OURS.pad

MODELS = {**TRANSLATORS, **LANGUAGE}
EXACT = {"atol": 1e-12, "rtol": 0}
every_model = pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
every_translator = pytest.mark.parametrize("config", TRANSLATORS.values(), ids=TRANSLATORS)


@every_model
def test_runs_and_scores_every_word(config: ModelConfig) -> None:
    model = build(config)
    known = features(model, TARGET)
    assert known.shape == (3, 6, config.width)  # type: ignore[attr-defined]
    scores = model.output(known)
    assert scores.shape == (3, 6, VOCABULARY)
    assert scores.isfinite().all()


@every_model
def test_the_future_cannot_leak(config: ModelConfig) -> None:
    model = build(config)
    known = features(model, TARGET)
    for t in range(1, 6):
        changed = TARGET.clone()
        changed[:, t:] = (changed[:, t:] + 1) % VOCABULARY
        other = features(model, changed)
        torch.testing.assert_close(other[:, :t], known[:, :t], **EXACT)
        assert not torch.allclose(other[:, t], known[:, t])


@every_translator
def test_padding_of_the_source_cannot_leak(config: ModelConfig) -> None:
    model = build(config)
    known = features(model, TARGET)
    wider = F.pad(SOURCE, (0, 3), value=PAD)
    torch.testing.assert_close(features(model, TARGET, wider), known, **EXACT)
    other = torch.where(torch.arange(8) < LENGTHS[:, None], wider, 7)  # padded with real words
    torch.testing.assert_close(features(model, TARGET, other), known, **EXACT)


@every_translator
def test_the_source_matters(config: ModelConfig) -> None:
    model = build(config)
    changed = SOURCE.clone()
    changed[:, 0] = (changed[:, 0] + 1) % VOCABULARY
    other = features(model, TARGET, changed)
    assert not torch.allclose(other[:, 0], features(model, TARGET)[:, 0])


@every_model
def test_step_by_step_equals_all_at_once(config: ModelConfig) -> None:
    model = build(config)
    expected, state = model.output(features(model, TARGET)), begin(model)
    for t in range(6):
        scores, state = model.step(TARGET[:, t], state)
        torch.testing.assert_close(scores, expected[:, t], **EXACT)


@every_model
def test_selecting_rows_of_a_state_permutes_what_follows(config: ModelConfig) -> None:
    model, rows = build(config), torch.tensor([2, 0, 2, 1])

    def after_two_words(rows: torch.Tensor) -> torch.Tensor:
        state = begin(model)
        for t in range(2):
            _, state = model.step(TARGET[:, t], state)
        state = state.select(rows)
        for t in range(2, 6):
            scores, state = model.step(TARGET[rows, t], state)
        return scores

    torch.testing.assert_close(
        after_two_words(rows), after_two_words(torch.arange(3))[rows], **EXACT
    )


@every_model
def test_a_batch_equals_its_rows_one_by_one(config: ModelConfig) -> None:
    model = build(config)
    known = features(model, TARGET)
    for i, length in enumerate(LENGTHS.tolist()):
        row = slice(i, i + 1)
        alone = features(model, TARGET[row], SOURCE[row, :length], LENGTHS[row])
        torch.testing.assert_close(alone, known[row], **EXACT)


@every_model
def test_saving_then_loading_is_the_identity(config: ModelConfig, tmp_path: Path) -> None:
    model = build(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    settings = from_dict(FAMILIES[family(config)], to_dict(config))
    assert settings == config
    again = settings.build().double().eval()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(features(again, TARGET), features(model, TARGET))


@every_model
def test_gradients_reach_every_parameter(config: ModelConfig) -> None:
    model = build(config)
    loss = F.cross_entropy(model.output(features(model, TARGET)).flatten(0, 1), TARGET.flatten())
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if not name.endswith("to_k.bias"):  # it moves all scores of a query alike: softmax is blind
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.slow
@every_model
def test_a_model_that_was_used_can_be_trained_further(config: ModelConfig) -> None:
    model = build(config)
    fresh = model.output(features(model, TARGET)).sum()
    expected = torch.autograd.grad(fresh, list(model.parameters()))
    used = build(config)
    with torch.inference_mode():
        _, state = used.step(TARGET[:, 0], begin(used))
        used.step(TARGET[:, 1], state)
    again = used.train().output(features(used, TARGET)).sum()
    torch.testing.assert_close(torch.autograd.grad(again, list(used.parameters())), expected)


@pytest.mark.parametrize("config", SOME_READERS.values(), ids=SOME_READERS)
def test_ways_to_attend_obey_the_laws(config: ModelConfig) -> None:
    _obeys_the_laws(config)


@pytest.mark.slow
@pytest.mark.parametrize("config", READERS.values(), ids=READERS)
def test_every_way_to_attend_obeys_the_laws(config: ModelConfig) -> None:
    _obeys_the_laws(config)


def _obeys_the_laws(config: ModelConfig) -> None:
    model = build(config)
    known, state = features(model, TARGET), begin(model)
    expected = model.output(known)
    for t in range(6):
        scores, state = model.step(TARGET[:, t], state)
        torch.testing.assert_close(scores, expected[:, t], **EXACT)
    wider = F.pad(SOURCE, (0, 3), value=PAD)
    torch.testing.assert_close(features(model, TARGET, wider), known, **EXACT)
    torch.testing.assert_close(features(model, TARGET[:, :3]), known[:, :3], **EXACT)
    expected.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.slow
@every_model
def test_overfits_one_batch(config: ModelConfig) -> None:
    torch.manual_seed(0)
    model = config.build()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    words, next_words = TARGET[:, 1:-1], TARGET[:, 2:]  # rows that begin alike cannot be told apart
    for _ in range(400):
        scores = model.output(features(model, words))
        loss = F.cross_entropy(scores.flatten(0, 1), next_words.flatten())
        if loss < 0.1:
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    pytest.fail(f"the loss is still {loss:.3f}")


@pytest.mark.parametrize(
    "name", one_fast_of_each({name: type(one) for name, one in PRESETS.items()})
)
def test_every_preset_builds(name: str) -> None:
    with torch.device("meta"):
        model = preset(name).build()
    assert sum(parameter.numel() for parameter in model.parameters()) > 0
    assert family(preset(name)) in FAMILIES


def test_an_unknown_preset_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        ConfigError, match=r"^no preset 'elmo'; try one of: .*cnn-transformer-.*, gpt2, "
    ):
        preset("elmo")


def test_the_fraction_of_the_length_lets_the_future_leak_through_the_length() -> None:
    config = TransformerConfig(
        vocabulary=VOCABULARY,
        width=8,
        heads=2,
        hidden=16,
        depth=1,
        positions="fraction",
        dropout=0.0,
    )
    model = build(config)
    assert not torch.allclose(features(model, TARGET[:, :3]), features(model, TARGET)[:, :3])


def test_batch_norm_lets_batch_mates_and_padding_leak() -> None:
    config = TransformerConfig(
        vocabulary=VOCABULARY, width=8, heads=2, hidden=16, depth=1, norm="batch", dropout=0.0
    )
    model = build(config).train()
    known = features(model, TARGET)
    assert not torch.allclose(features(model, TARGET[:2], SOURCE[:2], LENGTHS[:2]), known[:2])
    assert not torch.allclose(features(model, TARGET, F.pad(SOURCE, (0, 3))), known)
