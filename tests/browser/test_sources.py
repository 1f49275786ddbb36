"""Less than every weight: what the page makes of it, and what it calls it."""

import base64
import zlib
from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import Open, table
from tests.browser.documents import Array, Blobs, Made, recurrent

pytestmark = pytest.mark.slow
NAME = "decoder.0.cross"


def kept_as(made: Made, arrays: dict[str, tuple[Array, str, str]]) -> dict[str, Any]:
    """The same document with other arrays in place of its weights."""
    blobs = Blobs()
    look = made.document["looks"][0]
    look["sites"][0]["arrays"] = {
        name: blobs.add(values, dtype, code=code) for name, (values, dtype, code) in arrays.items()
    }
    return {**made.document, "blobs": blobs.packed}


def test_eight_bit_weights_are_called_so(open_page: Open) -> None:
    made = recurrent()
    weights = made.weights[0, NAME]
    opened = open_page(kept_as(made, {"weights": (weights, "u8", "sqrt")}), state="#unit=pieces")
    opened.page.locator("#alignment .table-button").click()
    *_, shown = table(opened.page, "#alignment")
    np.testing.assert_allclose(np.array(shown), weights[0], atol=0.0045)
    assert opened.page.locator("#alignment .badge").inner_text().endswith("8-bit")


@pytest.mark.parametrize("places", ["u16", "u32"])
def test_the_largest_weights_alone_leave_the_rest_in_other(open_page: Open, places: str) -> None:
    made = recurrent()
    weights = made.weights[0, NAME]
    order = np.argsort(-weights, axis=-1)[..., :2]
    top = np.take_along_axis(weights, order, axis=-1)
    arrays = {"top_weights": (top, "f16", "linear"), "top_places": (order, places, "linear")}
    document = kept_as(made, arrays)
    opened = open_page(document, state="#unit=pieces&threshold=0.05")
    opened.page.locator("#alignment .table-button").click()
    columns, _, shown = table(opened.page, "#alignment")
    assert columns[-1] == "other"
    np.testing.assert_allclose(np.array(shown)[:, -1], 1 - top[0].sum(axis=-1), atol=0.002)
    np.testing.assert_allclose(np.array(shown).sum(axis=1), 1, atol=0.01)
    share = round(100 * top.sum() / top.shape[1])
    assert f"top 2, {share} % of the mass" in opened.page.locator("#alignment .badge").inner_text()
    assert opened.page.locator(".stub").count() > 0


def test_a_row_that_may_look_nowhere_looks_nowhere(open_page: Open) -> None:
    made = recurrent()
    weights = made.weights[0, NAME].copy()
    weights[0, 3] = 0
    document = kept_as(made, {"weights": (weights, "f16", "linear")})
    opened = open_page(document, state="#unit=pieces&step=3")
    assert opened.readout() == "‘sur’ looks nowhere."


def test_a_coarse_map_alone_is_shown_as_what_it_is(open_page: Open) -> None:
    made = recurrent()
    weights = made.weights[0, NAME]
    cells = weights[:, :16].reshape(1, 8, 2, 8, 2).sum(axis=-1).mean(axis=2)
    document = kept_as(made, {"mean_map": (cells, "u8", "sqrt")})
    site = document["looks"][0]["sites"][0]
    site["cell"] = [2, 2]
    opened = open_page(document)
    opened.page.locator("#alignment .table-button").click()
    columns, rows, shown = table(opened.page, "#alignment")
    assert (rows[0], columns[1]) == ("0–1", "2–3")
    np.testing.assert_allclose(np.array(shown), cells[0], atol=0.0045)
    assert "2×2 mean" in opened.page.locator("#alignment .badge").inner_text()


def test_a_damaged_document_says_so(open_page: Open) -> None:
    made = recurrent()
    made.document["blobs"][0] = base64.b64encode(zlib.compress(b"1234")).decode()
    opened = open_page(made.document, ready=".empty")
    assert "holds 2 numbers, not 304" in opened.page.locator("main").inner_text()
