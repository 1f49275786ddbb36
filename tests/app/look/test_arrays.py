"""Numbers survive the way to the page."""

import torch

from saccade.app.look.arrays import Blobs

from .reading import values


def round_trip(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    blobs = Blobs()
    ref = blobs.add(tensor, kind)  # type: ignore[arg-type]
    return torch.tensor(values(blobs.texts, ref).astype("float64"))


def test_a_byte_holds_a_weight_to_four_thousandths_and_keeps_small_ones_in_order() -> None:
    weights = torch.rand(3, 5, 7, dtype=torch.float64) ** 4
    assert (round_trip(weights, "u8") - weights).abs().max() <= 0.004
    small = torch.tensor([0.0, 1e-4, 4e-4, 1e-3, 2e-3], dtype=torch.float64)
    assert round_trip(small, "u8").diff().gt(0).all()
    assert round_trip(torch.tensor([0.0, 1.0]), "u8").tolist() == [0.0, 1.0]


def test_places_are_whole_numbers_and_nowhere_is_the_largest() -> None:
    assert round_trip(torch.tensor([[0, 300, -1]]), "index").tolist() == [[0, 300, 65535]]
    assert round_trip(torch.tensor([70_000, -1]), "index").tolist() == [70_000, 2**32 - 1]


def test_halves_and_floats_keep_their_precision() -> None:
    x = torch.randn(50, dtype=torch.float64)
    assert (round_trip(x, "f16") - x).abs().max() < 2e-3
    assert (round_trip(x, "f32") - x).abs().max() < 3e-7


def test_the_same_bytes_are_stored_once() -> None:
    blobs = Blobs()
    one, two = (blobs.add(torch.ones(2, size), "f16") for size in (3, 3))
    other = blobs.add(torch.zeros(2, 3), "f16")
    assert one == two
    assert other.blob != one.blob
    assert len(blobs.texts) == 2
    assert blobs.size == sum(map(len, blobs.texts))
