"""The loss's kernel in Triton's interpreter, against torch in double precision."""

import sys
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.tasks.cross_entropy import IGNORED
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets

ROWS = 5


@dataclass(frozen=True)
class Case:
    """Scores of so many words, rows filled up to a size, in so wide blocks."""

    words: int = 40
    extra: int = 0
    block: int = 8192
    smoothing: float = 0.0
    dtype: torch.dtype = torch.float32
    height: float = 3.0

    def scores(self) -> Tensor:
        """What fills a row up is not zero, for nothing may come of it."""
        rng = torch.Generator().manual_seed(self.words)
        size = ROWS, self.words + self.extra
        return (self.height * torch.randn(size, generator=rng)).to(self.dtype)

    def labels(self) -> Tensor:
        return torch.tensor([IGNORED, 1, self.words - 1, 5, IGNORED])


CASES = {
    "plain": Case(),
    "smooth": Case(smoothing=0.1),
    "several blocks": Case(words=70, block=32),
    "several blocks, smooth": Case(words=70, block=32, smoothing=0.3),
    "a full block": Case(words=64, block=32, smoothing=0.3),
    "filled up": Case(words=37, extra=27, smoothing=0.1),
    "filled up by a block": Case(words=33, extra=31, block=16, smoothing=0.1),
    "halves": Case(smoothing=0.1, dtype=torch.bfloat16),
    "enormous": Case(height=1e4),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tensor, Tensor]]:
    return interpreted(__file__, tmp_path_factory.mktemp("loss"))


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_are_torchs(name: str, found: dict[str, tuple[Tensor, Tensor]]) -> None:
    case, (loss, gradient) = CASES[name], found[name]
    scores = case.scores()[:, : case.words].double().requires_grad_()
    expected = F.cross_entropy(
        scores,
        case.labels(),
        reduction="sum",
        label_smoothing=case.smoothing,
        ignore_index=IGNORED,
    )
    (slopes,) = torch.autograd.grad(expected, scores)
    near = 1e-2 if case.dtype == torch.bfloat16 else 2e-6
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), expected.detach(), rtol=1e-5, atol=1e-5)
    assert gradient.dtype == case.dtype
    torch.testing.assert_close(gradient[:, : case.words].double(), slopes, rtol=near, atol=near)
    assert gradient[:, case.words :].eq(0).all()


def main(path: str) -> None:
    mend_interpreter()
    from saccade.tasks import cross_entropy_kernel as kernel

    def computed(case: Case) -> tuple[Tensor, Tensor]:
        scores, kernel.BLOCK = case.scores(), case.block
        loss = kernel.score_loss_by_kernel(
            scores, case.labels(), words=case.words, smoothing=case.smoothing
        )
        return loss, scores

    torch.save({name: computed(case) for name, case in CASES.items()}, path)


if __name__ == "__main__":
    main(sys.argv[1])
