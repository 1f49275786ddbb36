"""Whatever the tests call of saccade is checked: types, shapes, and a dimension across a call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from saccade.attention.attend import attend
from saccade.models.text.gpt import GptConfig
from tests.shape_checks import at_once, types_checked

Row = Float[Tensor, " N"]
ROW, TABLE = torch.zeros(3), torch.zeros(3, 4)
check: Any = at_once(typechecker=types_checked)


@check
def product(row: Row, table: Float[Tensor, "N M"] | None = None) -> Float[Tensor, " M"]:
    return row[1:] if table is None else row @ table


@check
def grown(row: Row) -> Row:
    return torch.cat([row, row])


@check
def repeated(rows: list[Row], *, times: int = 2) -> list[Row]:
    return times * rows


@check
@dataclass
class Pair:
    one: Row
    other: Row


@contextmanager
@check
def opened(row: Row) -> Iterator[Row]:
    yield row


@check
def outer(row: Row) -> Float[Tensor, " M"]:
    """Calls what has other sizes by the same names."""
    with opened(torch.zeros(5)) as other:
        return product(other, torch.zeros(5, len(row) + 1))


@check
def shortest(count: int) -> int:
    return count


def test_what_is_right_passes() -> None:
    assert product(ROW, TABLE).shape == (4,)
    assert product(ROW).shape == (2,)
    assert len(repeated([ROW], times=3)) == 3
    assert Pair(ROW, ROW).one is ROW
    assert outer(ROW).shape == (4,)
    assert shortest(3) == 3


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (product, (TABLE,)),
        (product, (ROW.int(),)),
        (product, ([0.0],)),
        (repeated, ([TABLE],)),
        (shortest, ("3",)),
        (Pair, (ROW, 3)),
    ],
)
def test_number_of_dimensions_and_types_are_checked(
    call: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    with pytest.raises(TypeCheckError):
        call(*given)


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (product, (ROW, TABLE.T)),
        (Pair, (ROW, torch.zeros(4))),
        (grown, (ROW,)),
    ],
)
def test_a_dimension_has_one_size_in_all_that_a_call_is_given_and_gives(
    call: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    with pytest.raises(TypeCheckError):
        call(*given)


def test_what_yields_is_checked_when_it_is_called() -> None:
    with pytest.raises(TypeCheckError):
        opened(TABLE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU goes without")
def test_saccade_is_checked() -> None:
    q, k = torch.zeros(2, 4), torch.zeros(3, 5)
    with pytest.raises(TypeCheckError, match="size of dimension K"):
        attend(q, k, k)
    with pytest.raises(TypeCheckError):
        GptConfig(width="8")  # type: ignore[arg-type]
