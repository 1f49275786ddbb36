"""A stack whose sums are fused with norms, and whose biases get their gradients there.

Its kernels run in Triton's interpreter; the plain formulas in the same precision are the oracle.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.blocks.stack import Block
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from tests.interpreter import interpreted, mend_interpreter

VIT = VitConfig(image=12, patch=4, width=20, depth=3, heads=2, classes=5)
GPT = GptConfig(vocabulary=11, width=12, depth=2, heads=3, longest=9, dropout=0.0)
TRANSFORMER = TransformerConfig(
    vocabulary=11, width=12, depth=2, heads=3, hidden=10, dropout=0.0, residual="pre"
)
SWIN = SwinConfig(patch=2, window=2, width=8, depths=(2,), heads=(2,), classes=3)
Found = dict[str, Any]


def picture() -> Tensor:
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(5))


def scores(model: Any) -> Tensor:
    return model(picture())


def every_token(model: Any) -> Tensor:
    return model.tokens(picture())


def early(model: Any) -> Tensor:
    return model.tokens(picture(), 2)


def translation(model: Any) -> Tensor:
    source, target = torch.arange(10).view(2, 5), torch.arange(8).view(2, 4)
    return model(source, torch.tensor([5, 3]), target)


def words(model: Any) -> Tensor:
    return model(torch.arange(18).view(2, 9) % 11)


WORKS: dict[str, tuple[Any, Callable[[Any], Tensor]]] = {
    "class scores": (VIT, scores),
    "every token": (VIT, every_token),
    "an early stage": (VIT, early),
    "next words": (GPT, words),
    "a translation": (TRANSFORMER, translation),
}

# A block looks elsewhere than the one before it.
BY_NUMBER = {"shifted windows": (SWIN, scores)}


def built(config: Any) -> nn.Module:
    """No weight is such that a mistake in its place would not show."""
    torch.manual_seed(0)
    model = config.build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def computed(
    config: Any, work: Callable[[Any], Tensor], *, recompute: bool = False
) -> dict[str, Tensor]:
    model = built(config)
    for block in model.modules():
        if isinstance(block, Block):
            block.separate = block.recompute = recompute
    torch.manual_seed(2)  # for dropout
    output = work(model)
    flow = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    (output * flow).sum().backward()
    slopes = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"output": output.detach(), **slopes}


@pytest.mark.parametrize("name", [*WORKS, *BY_NUMBER])
def test_blocks_called_one_by_one_that_recompute_give_what_the_stack_gives(name: str) -> None:
    config, work = {**WORKS, **BY_NUMBER}[name]
    plain, again = computed(config, work), computed(config, work, recompute=True)
    assert again.keys() == plain.keys()
    for part, expected in plain.items():
        torch.testing.assert_close(again[part], expected, rtol=1e-5, atol=1e-5, msg=part)


def test_what_is_computed_again_drops_the_same_elements() -> None:
    config = replace(GPT, dropout=0.3)
    plain, again = computed(config, words), computed(config, words, recompute=True)
    assert not plain["output"].equal(computed(GPT, words)["output"])
    assert all(again[part].equal(expected) for part, expected in plain.items())


def test_a_block_that_recomputes_keeps_its_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = Block._run  # type: ignore[reportPrivateUsage]

    def counted(self: Block, x: Tensor, memory: Any, layer: int) -> Tensor:
        runs.append(layer)
        return run(self, x, memory, layer)

    monkeypatch.setattr(Block, "_run", counted)
    kept: dict[bool, int] = {}
    for recompute in (False, True):
        sizes: list[int] = []

        def pack(x: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            computed(GPT, words, recompute=recompute)
        kept[recompute] = sum(sizes)
    assert runs == [0, 1, 1, 0]
    assert kept[True] < kept[False] / 4
    runs.clear()
    with torch.no_grad():
        words(built(GPT))
    assert runs == []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return interpreted(__file__, tmp_path_factory.mktemp("stack"))


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_fused_sums_and_deferred_gradients_are_those_of_the_plain_formulas(
    name: str, found: Found
) -> None:
    plain, kernels = computed(*WORKS[name]), found[name]
    assert kernels.keys() == plain.keys()
    for part, expected in plain.items():
        torch.testing.assert_close(kernels[part], expected, rtol=1e-4, atol=1e-4, msg=part)


@pytest.mark.slow
def test_kernels_serve_blocks_that_recompute(found: Found) -> None:
    for part, expected in computed(GPT, words).items():
        torch.testing.assert_close(found["again"][part], expected, rtol=1e-4, atol=1e-4, msg=part)


@pytest.mark.slow
def test_sums_are_fused_with_the_norm_that_follows(found: Found) -> None:
    """All but the first norm; a sum that none follows is made by itself."""
    assert found["fused"] == {
        "class scores": 6,
        "every token": 6,
        "an early stage": 3,
        "next words": 4,
        "a translation": 10,
    }


@pytest.mark.slow
@torch.no_grad()
def test_the_packed_stack_scores_images_as_the_plain_formulas_do(found: Found) -> None:
    torch.testing.assert_close(found["packed"], scores(built(VIT)), rtol=1e-4, atol=1e-4)


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention import multihead
    from saccade.blocks import dropout, mlp, patches, residual, stack
    from saccade.blocks.inference import packed
    from saccade.blocks.kernels import residual as kernels
    from saccade.models.inference.lean_vit import LeanVit

    def always(x: Tensor) -> bool:
        return True

    modules: Any = (multihead, stack, mlp, patches)
    for module in modules:
        module.defers_bias = always
    modules = (dropout, mlp, packed, residual, stack)
    for module in modules:
        module.runs_kernels = always
    found: Found = {"fused": {}, "packed": LeanVit(built(VIT), "float32")(picture())}
    found["again"] = computed(GPT, words, recompute=True)
    fused = kernels.add_norm_beside
    for name, work in WORKS.items():
        calls: list[int] = []

        def counted(*args: Any, calls: list[int] = calls, **how: Any) -> Any:
            calls.append(1)
            return fused(*args, **how)

        kernels.add_norm_beside = counted
        found[name] = computed(*work)
        found["fused"][name] = len(calls)
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
