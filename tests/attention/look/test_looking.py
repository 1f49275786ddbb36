"""Watching a model: what is recorded, under which names, and that nothing stays behind."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.attention import attend, multihead
from saccade.attention import axes as sides
from saccade.attention.axes import TEXT
from saccade.attention.look import later
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.looking import looking
from saccade.attention.look.view import View
from saccade.attention.look.watching import sites
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.recurrent.attending_rnn import attending_rnn
from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models import (
    ConvSeq2SeqConfig,
    GptConfig,
    RnnAttentionConfig,
    Seq2SeqConfig,
    TransformerConfig,
)
from saccade.models.text import rnn_attention
from tests.attention.kernels import errors, numbers, of_glance, statistics, truth

SOURCE, LENGTHS = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
TARGET = torch.tensor([[1, 4, 5, 6], [1, 7, 8, 9]])

SIZES: dict[str, Any] = {"vocabulary": 10, "width": 8, "dropout": 0.1}
LOOKERS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(**SIZES, depth=2, heads=2, hidden=16),
    "pre-norm": TransformerConfig(**SIZES, depth=1, heads=4, hidden=16, residual="pre"),
    "gpt": GptConfig(**SIZES, depth=2, heads=2),
    "convolutional": ConvSeq2SeqConfig(**SIZES, depth=2),
    **{
        f"rnn {score} {context}": RnnAttentionConfig(**SIZES, score=score, context=context)  # type: ignore[arg-type]
        for score, context in (
            ("mlp", "readout"),
            ("dot", "layer"),
            ("scaled-dot", "readout"),
            ("multiplicative", "input"),
            ("mlp", "input"),
        )
    },
}
KEEPS = {"direct": Keep(zoom=True), "blocks": Keep(dense=0, map_side=2, top=3, zoom=True)}


def built(name: str) -> nn.Module:
    """With weights large enough for its looks to differ."""
    torch.manual_seed(0)
    model = LOOKERS[name].build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def features(model: nn.Module) -> Tensor:
    return model(TARGET) if type(model).__name__ == "Gpt" else model(SOURCE, LENGTHS, TARGET)


def transformer() -> nn.Module:
    torch.manual_seed(0)
    return TransformerConfig(vocabulary=10, width=8, depth=2, heads=2, hidden=16).build().eval()


def test_every_site_is_recorded_with_rows_heads_queries_and_keys() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    shapes = {name: tuple(weights.shape) for name, weights in trace.weights().items()}
    assert shapes == {
        name: (
            2,
            2,
            3 if "encoder" in name else 4,
            4 if "decoder" in name and "self" in name else 3,
        )
        for name in sites(model)
    }


def test_padding_gets_no_weight_and_the_rest_sums_to_one() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    for name, weights in trace.weights().items():
        tokens = torch.arange(weights.shape[2]) < LENGTHS[:, None]
        sums = weights.sum(dim=-1) if "decoder" in name else weights.sum(dim=-1)[:, 0] * tokens
        torch.testing.assert_close(sums, torch.ones_like(sums) * (sums > 0))
        assert (sums == 0).sum() == (0 if "decoder" in name else 1)
        if name.endswith("cross") or name.startswith("encoder"):
            assert weights[1, :, :, 2].eq(0).all()


def test_only_the_sites_asked_for_are_watched() -> None:
    model = transformer()
    with looking(model, only="cross") as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert list(trace.weights()) == ["decoder.0.cross", "decoder.1.cross"]


@pytest.mark.parametrize("context", ["readout", "layer", "input"])
def test_a_model_that_reads_step_by_step_shows_all_of_its_steps(context: str) -> None:
    model = RnnAttentionConfig(vocabulary=10, width=8, context=context).build()  # type: ignore[arg-type]
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert trace.weights()["decoder.cross"].shape == (2, 1, 4, 3)


def test_recorded_weights_do_not_hold_on_to_the_graph() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert not any(weights.requires_grad for weights in trace.weights().values())


def test_nothing_is_recorded_after_the_block() -> None:
    model = transformer()
    with looking(model) as trace:
        pass
    model(SOURCE, LENGTHS, TARGET)
    assert trace.weights() == {}
    assert all(site.watcher is None for site in sites(model).values())


def test_no_watcher_is_left_after_an_exception() -> None:
    model = transformer()
    with pytest.raises(IndexError), looking(model):
        model(SOURCE + 10, LENGTHS, TARGET)  # no such words
    assert all(site.watcher is None for site in sites(model).values())


def test_looking_changes_no_bit_of_a_models_output() -> None:
    model = transformer()
    unwatched = model(SOURCE, LENGTHS, TARGET)
    with looking(model):
        assert torch.equal(model(SOURCE, LENGTHS, TARGET), unwatched)


def test_a_model_without_attention_cannot_be_looked_at() -> None:
    model = Seq2SeqConfig(vocabulary=10, width=8).build()
    with pytest.raises(ConfigError, match=r"^Seq2Seq has no attention to look at$"):
        looking(model).__enter__()


@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("name", LOOKERS)
def test_statistics_are_those_of_the_weights(name: str, keep: Keep) -> None:
    model = built(name)
    with torch.no_grad(), looking(model) as whole:
        features(model)
    with looking(model, keep=keep) as trace:
        features(model)
    assert list(trace) == list(whole) == list(sites(model))
    assert len(trace) == len(sites(model))
    for site, weights in whole.weights().items():
        found, expected = of_glance(trace[site]), statistics(numbers(weights), keep)
        drawn = len(trace.calls(site)) == 1  # maps of several calls cannot be put together
        expected = {n: x for n, x in expected.items() if drawn or not n.endswith("map")}
        assert max(errors(found, expected).values()) <= 2e-6
        assert trace[site].keys == weights.shape[3]


@pytest.mark.parametrize("name", ["transformer", "pre-norm", "gpt"])
def test_weights_are_the_softmax_of_what_the_projections_give(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, made = built(name), dict[object, Tensor]()

    def noted(x: Tensor, *layers: nn.Module, real: Any = multihead.together) -> Tensor:
        made.update({layer: layer(x) for layer in layers})
        return real(x, *layers)

    monkeypatch.setattr(multihead, "together", noted)  # one product for several layers
    attending = {n: s for n, s in sites(model).items() if isinstance(s, MultiHeadAttention)}
    for module in attending.values():
        module.to_q.register_forward_hook(lambda layer, _, x: made.update({layer: x}))
    with looking(model) as trace:
        features(model)
    assert len(attending) == len(sites(model))
    for site, module in attending.items():
        q, k = (
            made[layer].unflatten(-1, (module.heads, -1)).transpose(1, 2)
            for layer in (module.to_q, module.to_k)
        )
        reads_source = module.columns == sides.SOURCE
        mask = (torch.arange(3) < LENGTHS[:, None])[:, None, None] if reads_source else None
        view = View(q, k, module.head_width**-0.5, causal=not reads_source, mask=mask)
        right, seeing = truth(view), numbers(trace[site].where) >= 0
        assert seeing.all() != site.startswith("encoder")  # where a query is padding
        assert abs(numbers(trace.weights()[site]) - right.weights)[seeing].max() <= 1e-6
        assert abs(numbers(trace[site].lse) - right.lse)[seeing].max() <= 1e-5


@pytest.mark.parametrize("name", [name for name in LOOKERS if name.startswith(("rnn", "conv"))])
def test_a_site_reads_its_values_by_the_weights_that_it_shows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, read = built(name), dict[str, list[tuple[Tensor, Tensor]]]()
    for site, module in sites(model).items():
        calls = read.setdefault(site, [])
        module.register_forward_hook(lambda _, x, c, calls=calls: calls.append((x[-1].values, c)))

    def noted(*inputs: Any) -> Any:  # the lean loop reads by itself
        run = attending_rnn(*inputs)
        contexts = run.reads.unflatten(0, (len(inputs[2]), -1)).transpose(0, 1)
        read["decoder.cross"].append((inputs[4].values, contexts))
        return run

    monkeypatch.setattr(rnn_attention, "attending_rnn", noted)
    with looking(model) as trace:
        features(model)
    for site, weights in trace.weights().items():
        expected = weights[:, 0] @ read[site][0][0]
        if name == "convolutional":
            expected = sites(model)[site].to_output(expected)  # type: ignore[operator]
        torch.testing.assert_close(torch.cat([c for _, c in read[site]], dim=1), expected)


def trained(model: nn.Module) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """A training step: its output, its gradients, and where chance stands after it."""
    model.train().zero_grad()
    torch.manual_seed(1)
    output = model.output(features(model))  # type: ignore[operator]
    output.square().mean().backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return output.detach(), gradients, torch.get_rng_state()


@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("name", LOOKERS)
def test_looking_changes_no_bit_of_a_training_step(name: str, keep: Keep) -> None:
    model = built(name)
    output, gradients, chance = trained(model)
    with looking(model, keep=keep) as trace:
        seen_output, seen_gradients, seen_chance = trained(model)
    assert len(trace) == len(sites(model))
    assert torch.equal(seen_output, output)
    assert torch.equal(seen_chance, chance)
    assert seen_gradients.keys() == gradients.keys()
    assert len(gradients) > 10
    for parameter, gradient in gradients.items():
        assert torch.equal(seen_gradients[parameter], gradient), parameter


@pytest.mark.parametrize("name", LOOKERS)
def test_nothing_is_computed_when_nobody_looks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = built(name), list[str]()
    observe, with_lse = later.observe, attend.sdpa_with_lse

    def observing(*given: Any, **more: Any) -> Glance:
        calls.append("observe")
        return observe(*given, **more)

    def asking(*given: Any, **more: Any) -> Any:
        calls.append("lse")
        return with_lse(*given, **more)

    monkeypatch.setattr(later, "observe", observing)
    monkeypatch.setattr(attend, "sdpa_with_lse", asking)
    features(model)
    assert calls == []
    with looking(model) as trace:
        features(model)
    assert all(trace.calls(site) for site in trace)
    assert calls.count("observe") >= len(sites(model))
    assert name.startswith("rnn") or calls.count("lse") == len(sites(model))
    calls.clear()
    features(model)
    assert calls == []


@pytest.mark.parametrize("name", LOOKERS)
def test_axes_say_who_looks_at_what(name: str) -> None:
    model = built(name)
    with looking(model) as trace:
        features(model)
    kinds = {
        "encoder": (sides.SOURCE, sides.SOURCE),
        "self": (TEXT, TEXT) if name == "gpt" else (sides.TARGET, sides.TARGET),
        "cross": (sides.TARGET, sides.SOURCE),
    }
    assert trace.axes == {
        site: kinds["encoder" if site.startswith("encoder") else site.split(".")[-1]]
        for site in sites(model)
    }


def test_one_look_inside_another_sees_the_same_and_hides_nothing() -> None:
    model = transformer()
    with looking(model) as outer:
        with looking(model, only="cross", keep=Keep(dense=0)) as inner:
            model(SOURCE, LENGTHS, TARGET)
        model(SOURCE, LENGTHS, TARGET[:, :2])
    assert list(inner) == ["decoder.0.cross", "decoder.1.cross"]
    assert {site: len(outer.calls(site)) for site in outer} == dict.fromkeys(sites(model), 2)
    for site in inner:
        assert len(inner.calls(site)) == 1
        torch.testing.assert_close(inner[site].entropy, outer.calls(site)[0].entropy)
    assert inner["decoder.0.cross"].weights is None
    assert all(site.watcher is None for site in sites(model).values())


def test_an_exception_inside_a_look_leaves_the_outer_one_watching() -> None:
    model = transformer()
    with looking(model) as outer:
        with pytest.raises(IndexError), looking(model):
            model(SOURCE + 10, LENGTHS, TARGET)
        model(SOURCE, LENGTHS, TARGET)
        assert len(outer) == 6
    assert all(site.watcher is None for site in sites(model).values())


def test_forward_passes_are_kept_apart_and_the_last_is_shown() -> None:
    model = transformer()
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
        model(SOURCE[:1], LENGTHS[:1], TARGET[:1, :2])
    with looking(model) as alone:
        model(SOURCE[:1], LENGTHS[:1], TARGET[:1, :2])
    for site in trace:
        calls, readings = trace.calls(site), trace.readings(site)
        assert [len(call.entropy) for call in calls] == [len(one.entropy) for one in readings]
        assert len(calls) == 2
        assert torch.equal(trace[site].entropy, alone[site].entropy)
    assert trace.calls("nowhere") == trace.readings("nowhere") == []


def test_a_site_that_is_not_there_is_named_with_those_that_are() -> None:
    model = transformer()
    with looking(model, only="cross") as trace:
        with pytest.raises(ConfigError) as nothing:
            trace["decoder.0.cross"]
        model(SOURCE, LENGTHS, TARGET)
    with pytest.raises(ConfigError) as wrong:
        trace["decoder.7.cross"]
    assert str(nothing.value) == (
        "nothing was seen at 'decoder.0.cross'; there are: none yet: run the model inside the block"
    )
    assert str(wrong.value) == (
        "nothing was seen at 'decoder.7.cross'; there are: decoder.0.cross, decoder.1.cross"
    )


def test_weights_that_were_too_many_to_keep_say_how_to_keep_them() -> None:
    model = transformer()
    with looking(model, keep=Keep(dense=3), only="0.cross") as trace:
        model(SOURCE, LENGTHS, TARGET)
    with pytest.raises(ConfigError) as error:
        trace.weights()
    assert str(error.value) == (
        "the weights of decoder.0.cross were not kept: 4 positions are more than dense=3; "
        "look with Keep(dense=4), or use the statistics"
    )
    with looking(model, keep=Keep(dense=4), only="0.cross") as trace:
        model(SOURCE, LENGTHS, TARGET)
    assert trace.weights()["decoder.0.cross"].shape == (2, 2, 4, 3)


def test_asking_for_no_site_that_exists_names_those_that_do() -> None:
    message = (
        r"^no site ends in only='crossed'; there are: encoder\.0\.self, .*, decoder\.1\.cross$"
    )
    with pytest.raises(ConfigError, match=message):
        looking(transformer(), only="crossed").__enter__()
