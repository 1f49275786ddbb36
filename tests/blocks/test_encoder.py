"""A stack whose sums wait for the next norm, and whose biases get their gradients elsewhere.

Its kernels run in Triton's interpreter; the plain formulas in the same precision are the oracle.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.models.text.gpt import GptConfig
from saccade.models.vision.vit import VitConfig
from tests.interpreter import interpreted, mend_interpreter

VIT = VitConfig(image=12, patch=4, width=20, depth=3, heads=2, classes=5)
GPT = GptConfig(vocabulary=11, width=12, depth=2, heads=3, longest=9, dropout=0.0)
Found = dict[str, Any]


def picture() -> Tensor:
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(5))


def scores(model: Any) -> Tensor:
    return model(picture())


def every_token(model: Any) -> Tensor:
    return model.tokens(picture())


def early(model: Any) -> Tensor:
    return model.tokens(picture(), 2)


def words(model: Any) -> Tensor:
    return model(torch.arange(18).view(2, 9) % 11)


WORKS: dict[str, tuple[Any, Callable[[Any], Tensor]]] = {
    "class scores": (VIT, scores),
    "every token": (VIT, every_token),
    "an early stage": (VIT, early),
    "next words": (GPT, words),
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
def test_carried_sums_and_owed_gradients_are_those_of_the_plain_formulas(
    name: str, found: Found
) -> None:
    plain, kernels = computed(*WORKS[name]), found[name]
    assert kernels.keys() == plain.keys()
    for part, expected in plain.items():
        torch.testing.assert_close(kernels[part], expected, rtol=1e-4, atol=1e-4, msg=part)


@pytest.mark.slow
def test_sums_wait_only_where_a_norm_follows(found: Found) -> None:
    assert found["carried"] == {
        "class scores": 2,
        "every token": 3,
        "an early stage": 0,
        "next words": 2,
    }


@pytest.mark.slow
@torch.no_grad()
def test_the_lean_stack_scores_pictures_as_the_plain_formulas_do(found: Found) -> None:
    torch.testing.assert_close(found["lean"], scores(built(VIT)), rtol=1e-4, atol=1e-4)


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention import multihead
    from saccade.blocks import dropout, encoder, mlp, patches, residual
    from saccade.blocks.inference import lean
    from saccade.models.inference.lean_vit import LeanVit

    def always(x: Tensor) -> bool:
        return True

    for module in (multihead, encoder, mlp, patches):
        module.sums_later = always
    for module in (dropout, encoder, residual, lean):
        module.runs_kernels = always
    found: Found = {"carried": {}, "lean": LeanVit(built(VIT), "float32")(picture())}
    carry = encoder.EncoderLayer.carry
    for name, work in WORKS.items():
        calls: list[int] = []

        def counted(*args: Any, calls: list[int] = calls, **how: Any) -> Any:
            calls.append(1)
            return carry(*args, **how)

        encoder.EncoderLayer.carry = counted
        found[name] = computed(*work)
        found["carried"][name] = len(calls)
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
