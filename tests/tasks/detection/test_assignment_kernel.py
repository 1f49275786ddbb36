"""The assignment by a kernel, in Triton's interpreter, against scipy's."""

import sys
from typing import NamedTuple

import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # another process, which interprets


class Case(NamedTuple):
    """So many objects and queries in so many problems; some objects are not there."""

    objects: int
    queries: int
    problems: int = 8
    there: float = 0.7
    whole: bool = False  # costs that are whole numbers, so that many are equal

    def costs(self) -> Tensor:
        rng = torch.Generator().manual_seed(self.objects)
        found = 3 * torch.randn(2, self.problems, self.objects, self.queries, generator=rng)
        return found.round() if self.whole else found

    def real(self) -> Tensor:
        rng = torch.Generator().manual_seed(self.queries)
        shape = 2, self.problems, self.objects
        return torch.rand(shape, generator=rng) < self.there


CASES = {
    "one": Case(1, 1, there=1.0),
    "as many": Case(5, 5, there=1.0),
    "few": Case(4, 7),
    "ties": Case(8, 16, whole=True),
    "no power of two": Case(6, 130, problems=2),
    "none there": Case(4, 8, there=0.0),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    return interpreted(__file__, tmp_path_factory.mktemp("assigned"))


@pytest.mark.parametrize("name", CASES)
def test_no_assignment_costs_less(name: str, found: dict[str, Tensor]) -> None:
    case = CASES[name]
    every = zip(case.costs().flatten(0, 1), case.real().flatten(0, 1), found[name].flatten(0, 1))
    for cost, real, queries in every:
        assert queries[~real].eq(-1).all()
        chosen = queries[real]
        assert len(chosen.unique()) == len(chosen)
        assert ((chosen >= 0) & (chosen < case.queries)).all()
        rows, columns = linear_sum_assignment(cost[real])
        least = cost[real][rows, columns].sum()
        torch.testing.assert_close(cost[real, chosen].sum(), least, rtol=0, atol=1e-4)


def main(path: str) -> None:
    mend_interpreter()
    from saccade.tasks.detection.assignment_kernel import assigned_on_gpu

    made = {name: assigned_on_gpu(case.costs(), case.real()) for name, case in CASES.items()}
    torch.save(made, path)


if __name__ == "__main__":
    main(sys.argv[1])
