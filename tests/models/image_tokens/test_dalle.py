"""DALL·E's Transformer: what it sees, and that steps from caches say what it says as a whole."""

import pytest
import torch
from torch import nn

from saccade.errors import ConfigError
from saccade.models.image_tokens.dalle import (
    COLUMN,
    NEIGHBOURS,
    ROW,
    Dalle,
    DalleConfig,
    sees_of_image,
)
from tests.models import zoo

SMALL = DalleConfig(vocabulary=20, text=6, codes=11, grid=3, width=16, depth=4, heads=2, kernel=3)


def model(config: DalleConfig = SMALL) -> Dalle:
    made = zoo.build(config, torch.float64)
    assert isinstance(made, Dalle)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    return made.eval()


def some(rows: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    words = torch.randint(SMALL.vocabulary, (rows, SMALL.text), generator=rng)
    codes = torch.randint(SMALL.codes, (rows, SMALL.cells), generator=rng)
    return words, torch.tensor([2, 5, 3])[:rows], codes


def test_every_layer_has_the_mask_that_the_paper_gives_it() -> None:
    assert sees_of_image(DalleConfig(depth=64))[:8] == (
        ROW,
        COLUMN,
        ROW,
        ROW,
        ROW,
        COLUMN,
        ROW,
        ROW,
    )
    assert sees_of_image(DalleConfig(depth=64))[-1] == NEIGHBOURS
    assert sees_of_image(DalleConfig(depth=1)) == (NEIGHBOURS,)


def test_no_code_sees_a_later_one() -> None:
    words, lengths, codes = some()
    made = model()
    one = made(words, lengths, codes)
    for place in range(SMALL.cells):
        other = codes.clone()
        other[:, place] = (other[:, place] + 1) % SMALL.codes
        two = made(words, lengths, other)
        changed = (one - two).abs().amax(dim=(0, 2)) > 1e-9
        assert not changed[: SMALL.text + place].any()
        assert changed[SMALL.text + place]


def test_what_lies_behind_the_end_of_a_text_does_not_matter() -> None:
    words, lengths, codes = some()
    other = words.clone()
    for row, length in enumerate(lengths.tolist()):
        other[row, length:] += 1
    made = model()
    assert torch.equal(made(words, lengths, codes), made(other, lengths, codes))


def test_what_fills_up_a_text_has_a_token_for_each_position() -> None:
    words, lengths, _ = some(1)
    tokens = model().text_tokens(words, lengths)[0]
    first = SMALL.codes + SMALL.vocabulary
    assert tokens[2:].tolist() == [first + place for place in range(2, SMALL.text)]
    assert tokens[:2].tolist() == (SMALL.codes + words[0, :2]).tolist()


@pytest.mark.parametrize("precision", [None, "float32"])
@pytest.mark.parametrize("given", [0, 1, 4])
def test_steps_from_caches_say_what_the_whole_says(precision: str | None, given: int) -> None:
    words, lengths, codes = some()
    made = model().float()
    whole = made.output(made(words, lengths, codes))[:, SMALL.text - 1 : -1]
    decoder = made.for_decoding(precision)  # type: ignore[arg-type]
    tokens = torch.cat([made.text_tokens(words, lengths), codes[:, :given]], dim=1)
    _, state = decoder.read(tokens[:, :-1], decoder.start(len(words)))
    last, found = tokens[:, -1], list[torch.Tensor]()
    for place in range(given, SMALL.cells):
        logits, state = decoder.step(last, state)
        found.append(logits)
        last = codes[:, place]
    torch.testing.assert_close(torch.stack(found, dim=1), whole[:, given:], atol=2e-5, rtol=1e-4)


def test_rows_of_a_batch_do_not_see_one_another() -> None:
    words, lengths, codes = some()
    made = model()
    together = made(words, lengths, codes)
    for row in range(len(words)):
        alone = made(words[row, None], lengths[row, None], codes[row, None])
        torch.testing.assert_close(together[row, None], alone)


def test_positions_of_cells_are_those_of_their_row_and_column() -> None:
    positions = model().positions.positions
    table = positions(0, SMALL.text + SMALL.cells)
    expected = positions.rows[2] + positions.columns[1]  # type: ignore[attr-defined]
    torch.testing.assert_close(table[SMALL.text + 2 * SMALL.grid + 1], expected)


def test_the_paper_has_twelve_billion_parameters() -> None:
    from saccade.models import PRESETS
    from saccade.models.outline import outline

    count = sum(p.numel() for p in outline(PRESETS["dalle-12b"]).parameters())
    assert 11.9e9 < count < 12.4e9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": 4}, "kernel=4 must be odd"),
        ({"width": 15}, "width=15 does not divide into heads=8"),
        ({"grid": 0}, "grid=0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DalleConfig(**change)
