"""The laws that every captioner obeys."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from saccade.attention.look.looking import looking
from saccade.config import from_dict, to_dict
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.greedy import Greedy
from saccade.decode.protocol import SharedState
from saccade.decode.search import search
from saccade.errors import ConfigError
from saccade.models import FAMILIES, family
from saccade.models.caption.captioner import CaptionerConfig
from saccade.models.inference.lean import lean

from .gallery import CAPTIONERS, CAPTIONS, OF, PICTURES, TOLD, VOCABULARY, build, each, rows, told

START, END = OURS.start, OURS.end

EXACT = {"atol": 1e-10, "rtol": 0}
every_captioner = pytest.mark.parametrize("config", CAPTIONERS.values(), ids=CAPTIONERS)


@every_captioner
def test_step_by_step_equals_all_at_once(config: CaptionerConfig) -> None:
    model = build(config)
    expected = each(CAPTIONS, model.output(told(model).hidden))
    for caption, of, scores in zip(CAPTIONS, OF, expected):
        state = model.start(PICTURES[of][None])
        for word, score in zip(caption, scores):
            found, state = model.step(torch.tensor([word]), state)
            torch.testing.assert_close(found[0], score, **EXACT)


@every_captioner
@pytest.mark.parametrize("order", [[2, 0, 3, 1], [3], [1, 1]])
def test_a_caption_does_not_depend_on_its_mates_nor_their_order(
    config: CaptionerConfig, order: list[int]
) -> None:
    model = build(config)
    known = each(CAPTIONS, told(model).hidden)
    some = [CAPTIONS[i] for i in order]
    for i, other in zip(order, each(some, told(model, some, OF[order]).hidden)):
        torch.testing.assert_close(other, known[i], **EXACT)


@every_captioner
def test_the_future_cannot_leak_and_the_past_matters(config: CaptionerConfig) -> None:
    model, captions = build(config), [list(CAPTIONS[1]) for _ in range(6)]
    for t, caption in enumerate(captions[1:], 1):
        caption[t] = (caption[t] + 1) % VOCABULARY
    first, *others = each(captions, told(model, captions, OF.new_zeros(6)).hidden)
    for t, other in enumerate(others, 1):
        torch.testing.assert_close(other[:t], first[:t], **EXACT)
        assert not torch.allclose(other[t], first[t])


@every_captioner
def test_each_caption_is_about_its_own_picture(config: CaptionerConfig) -> None:
    model = build(config)
    known = each(CAPTIONS, told(model).hidden)
    changed = PICTURES.clone()
    changed[1] = PICTURES[1].flip(0)
    for of, before, after in zip(OF, known, each(CAPTIONS, told(model, pictures=changed).hidden)):
        assert torch.allclose(before, after, **EXACT) == (of == 0)


@every_captioner
def test_selecting_rows_of_a_state_permutes_what_follows(config: CaptionerConfig) -> None:
    model, chosen = build(config), torch.tensor([1, 0, 1])

    def after_two_words(picked: torch.Tensor) -> torch.Tensor:
        state = model.start(PICTURES)
        _, state = model.step(torch.tensor([1, 1]), state)
        scores, _ = model.step(torch.tensor([6, 7])[picked], state.select(picked))
        return scores

    expected = after_two_words(torch.arange(2))[chosen]
    torch.testing.assert_close(after_two_words(chosen), expected, **EXACT)


@every_captioner
def test_beams_that_share_equal_rows_that_are_copied(config: CaptionerConfig) -> None:
    model, parents = build(config), torch.tensor([[1, 1, 0], [2, 0, 1]])
    decoder = lean(model, "float32")
    if decoder is None:
        pytest.skip("its rows are always copied")
    state = decoder.start(PICTURES)
    assert isinstance(state, SharedState)
    words = torch.tensor([4, 5, 6, 7, 8, 9])
    copied = model.start(PICTURES).select(torch.tensor([0, 0, 0, 1, 1, 1]))
    shared = state.spread(3)
    for _ in range(3):
        expected, copied = model.step(words, copied)
        found, shared = decoder.step(words, shared)
        torch.testing.assert_close(found, expected, **EXACT)
        copied = copied.select((parents + torch.tensor([[0], [3]])).flatten())
        shared = shared.follow(parents)
    expected, _ = model.step(words[:3], copied.select(torch.tensor([3, 4, 5])))
    found, _ = decoder.step(words[:3], shared.select(torch.tensor([1])))
    torch.testing.assert_close(found, expected, **EXACT)


@every_captioner
def test_a_beam_of_one_is_greedy(config: CaptionerConfig) -> None:
    model = build(config)
    first, limits = torch.full((2,), START), torch.tensor([9, 7])
    greedy, beams = (
        search(model, model.start(PICTURES), first, limits=limits, end=END, method=method)
        for method in (Greedy(), Beam(size=1))
    )
    assert [one.tokens for (one,) in greedy] == [one.tokens for (one,) in beams]


@every_captioner
def test_every_weight_learns(config: CaptionerConfig) -> None:
    """Also of the encoder: what it does not read was given up."""
    model = build(config).train()
    found = told(model)
    loss = F.cross_entropy(model.output(found.hidden), torch.arange(14) % VOCABULARY)
    if found.glances is not None:
        loss = loss + found.glances.log_chance.sum()
    loss.backward()
    idle = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


@every_captioner
def test_a_frozen_encoder_stays_as_it_is_and_the_rest_learns(config: CaptionerConfig) -> None:
    model = build(replace(config, frozen=True)).train()
    before = {name: value.clone() for name, value in model.image_encoder.state_dict().items()}
    told(model).hidden.square().sum().backward()
    assert all(p.grad is None for p in model.image_encoder.parameters())
    assert model.readout.weight.requires_grad
    assert all(
        torch.equal(value, before[n]) for n, value in model.image_encoder.state_dict().items()
    )


@every_captioner
def test_saving_then_loading_is_the_identity(config: CaptionerConfig, tmp_path: Path) -> None:
    model = build(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    settings = from_dict(FAMILIES[family(config)], to_dict(config))
    assert settings == config
    again = settings.build().double().eval()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(told(again).hidden, told(model).hidden)


@every_captioner
def test_looking_changes_nothing(config: CaptionerConfig) -> None:
    model = build(config)
    if not any("attention" in name for name, _ in model.named_modules()):
        pytest.skip("it does not look")
    expected = told(model).hidden
    with looking(model) as trace:
        assert torch.equal(told(model).hidden, expected)
    assert any(name.endswith("cross") for name in trace) or isinstance(config, type(TOLD))


@pytest.mark.slow
@every_captioner
def test_overfits_a_batch(config: CaptionerConfig) -> None:
    torch.manual_seed(0)
    model = replace(config, width=32).build().train()
    labels = torch.cat([torch.tensor([*caption[1:], 2]) for caption in CAPTIONS])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.004)
    for _ in range(300):
        found = model(PICTURES, rows(CAPTIONS), OF)
        loss = F.cross_entropy(model.output(found.hidden), labels)
        if loss < 0.6:  # two captions of each picture begin alike: it cannot be zero
            return
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    pytest.fail(f"the loss is still {loss:.3f}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "vgg"}, "no image encoder 'vgg'; try one of: resnet-nano"),
        ({"stage": -1}, "stage=-1 must be 0"),
        ({"width": 0}, "width=0 must be at least 1"),
        ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and below 1"),
    ],
)
@every_captioner
def test_settings_that_make_no_captioner_are_refused(
    config: CaptionerConfig, changes: dict[str, float], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(config, **changes)


def test_a_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="stage=6 is not there; ResNet has 1 to 5"):
        replace(TOLD, stage=6).build()
