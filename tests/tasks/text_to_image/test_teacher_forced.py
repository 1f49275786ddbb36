"""What a text-to-image model looks at as it chooses each code."""

import pytest
import torch

from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import looking
from saccade.models.image_tokens.dalle import SEES
from saccade.tasks.text_to_image.drawer import Drawing
from saccade.tasks.text_to_image.teacher_forced import cells_seen, teacher_forced_image
from tests.tasks.text_to_image.drawers import PROMPT, TINY_DALLE, tiny_drawer

CELLS = TINY_DALLE.cells
CODES = [n % TINY_DALLE.codes for n in range(0, 5 * CELLS, 5)]


def test_what_a_cell_looks_at_sums_to_one_and_nobody_sees_what_a_mask_hides() -> None:
    drawer = tiny_drawer()
    seen, masks = teacher_forced_image(drawer, PROMPT, CODES), cells_seen(drawer.model)
    assert list(seen.sees.values()) == ["row", "column", "neighbourhood"] == list(SEES)
    for name, weights in seen.sites.items():
        assert weights.shape == (TINY_DALLE.heads, CELLS, seen.special + CELLS)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(TINY_DALLE.heads, CELLS))
        allowed = masks[seen.sees[name]]
        to_cells = weights[..., seen.special :]
        assert to_cells[:, ~allowed].eq(0).all()
        assert to_cells[:, allowed].gt(0).all()


def test_the_masks_are_those_of_the_cell_before_which_chooses() -> None:
    masks, grid = cells_seen(tiny_drawer().model), TINY_DALLE.grid
    for chosen in range(CELLS):
        last = chosen - 1
        row = {other for other in range(chosen) if last - other <= grid}
        column = {other for other in range(chosen) if (last - other) % grid == 0}
        assert set(masks["row"][chosen].nonzero()[:, 0].tolist()) == row
        assert set(masks["column"][chosen].nonzero()[:, 0].tolist()) == column


def test_what_fills_up_a_text_is_one_column_and_words_are_as_they_were() -> None:
    drawer = tiny_drawer()
    seen = teacher_forced_image(drawer, PROMPT, CODES)
    assert drawer.vocabulary.decode(seen.tokens) == PROMPT
    tokens = torch.cat([drawer.text_tokens([PROMPT]), torch.tensor([CODES[:-1]])], dim=1)
    with torch.inference_mode(), looking(drawer.model, keep=Keep(dense=99)) as trace:
        drawer.model.words.decode(tokens)
        whole = {name: trace.weights()[name][0] for name in trace}
    words, text = len(seen.tokens), TINY_DALLE.text
    for name, weights in seen.sites.items():
        rows = whole[name][:, text - 1 :]
        torch.testing.assert_close(weights[..., :words], rows[..., :words])
        torch.testing.assert_close(weights[..., words], rows[..., words:text].sum(dim=-1))
        torch.testing.assert_close(weights[..., words + 1 : -1], rows[..., text:])


def test_the_codes_are_as_probable_as_they_were_when_they_were_drawn() -> None:
    drawer = tiny_drawer()
    (drawn,) = drawer.draw([PROMPT], Drawing(seed=3))
    seen = teacher_forced_image(drawer, PROMPT, drawn.codes)
    assert sum(seen.log_p) == pytest.approx(drawn.log_probability, rel=1e-4)
