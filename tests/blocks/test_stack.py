"""A stack whose sums are fused with norms, and whose biases get their gradients there.

Its kernels run in Triton's interpreter; the plain formulas in the same precision are the oracle.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision.vit import VitConfig
from tests.interpreter import interpreted, mend_interpreter

VIT = VitConfig(image=12, patch=4, width=20, depth=3, heads=2, classes=5)
GPT = GptConfig(vocabulary=11, width=12, depth=2, heads=3, longest=9, dropout=0.0)
TRANSFORMER = TransformerConfig(
    vocabulary=11, width=12, depth=2, heads=3, hidden=10, dropout=0.0, residual="pre"
)
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


def built(config: Any) -> nn.Module:
    """No weight is such that a mistake in its place would not show."""
    torch.manual_seed(0)
    model = config.build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def computed(config: Any, work: Callable[[Any], Tensor]) -> dict[str, Tensor]:
    model = built(config)
    output = work(model)
    flow = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    (output * flow).sum().backward()
    slopes = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"output": output.detach(), **slopes}


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
