"""What words mean in scenes, where everything is known, and in rows that say it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.data import shapes
from saccade.data.readers.images.read import read_images
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import ShapesSettings
from saccade.data.tokens.words import words
from saccade.errors import DataError
from saccade.metrics.outcomes import read_groups
from saccade.tasks.captioning.regions import (
    HiddenRows,
    HiddenScenes,
    group_of,
    in_row,
    in_scene,
    marked_boxes,
)
from tests.data.images_made import in_folder, rows

GROUPS = read_groups(("man,boy", "woman"))
HOW = ShapesSettings()


def rows_of(folder: Path, *said: dict[str, Any], side: int = 40) -> list[ImageRow]:
    folder.mkdir(exist_ok=True)
    for number in range(len(said)):
        noise = np.random.default_rng(number).integers(0, 256, (side, 2 * side, 3), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{number}.png")
    records = [
        {"file_name": f"{number}.png", "captions": ["a man"], **one}
        for number, one in enumerate(said)
    ]
    in_folder(folder, {"metadata.jsonl": rows(*records)})
    return read_images(folder, "train").rows


@pytest.mark.parametrize("split", ["train", "many", "biased-test"])
def test_every_noun_of_a_true_caption_means_the_object_that_it_names(split: str) -> None:
    for index in range(5):
        scene = shapes.scene(split, index, HOW)
        masks = shapes.masks(scene, 64)
        for caption in shapes.captions(scene):
            said, meant = words(caption), in_scene(scene, 64)
            found = [meant(said, place) for place in range(len(said))]
            content = shapes.parse(caption)
            assert content is not None
            named = sorted(one.word for one in found if one is not None)
            assert named == sorted(mention.kind for mention in content.objects)
            for mention in content.objects:
                (number,) = [i for i, thing in enumerate(scene.objects) if mention.fits(thing)]
                boxes = [r for r in found if r and np.array_equal(r.pixels.numpy(), masks[number])]
                assert len(boxes) == 1
                assert boxes[0].word == mention.kind


def test_the_box_is_the_smallest_around_what_one_sees() -> None:
    scene = shapes.scene("train", 3, HOW)
    thing = scene.objects[0]
    region = in_scene(scene, 64)(["a", thing.colour, thing.kind], 2)
    assert region is not None
    cx, cy, w, h = (shapes.visible_boxes(scene, 64)[0] * 64).tolist()
    expected = torch.zeros(64, 64, dtype=torch.bool)
    expected[round(cy - h / 2) : round(cy + h / 2), round(cx - w / 2) : round(cx + w / 2)] = True
    assert torch.equal(region.box, expected)


def test_what_is_not_in_the_scene_means_nothing_and_a_wrong_group_means_the_figure() -> None:
    scene = shapes.scene("biased-test", 0, HOW)
    meant, context = in_scene(scene, 64), scene.context
    assert context is not None
    others = [colour for colour in shapes.COLOURS if colour != context.colour]
    assert meant(["a", others[0], context.kind], 2) is None
    assert meant(["a", "star"], 1) is None
    assert meant(["beside"], 0) is None
    regions = [meant([word], 0) for word in ("knight", "wizard", "figure")]
    figure = shapes.masks(scene, 64)[scene.objects.index(scene.main)]
    assert all(r is not None and np.array_equal(r.pixels.numpy(), figure) for r in regions)


def test_boxes_may_be_in_pixels_or_in_shares(tmp_path: Path) -> None:
    pixels, shares = rows_of(
        tmp_path,
        {"boxes": {"Ball": [[20, 10, 40, 20]]}},
        {"boxes": {"ball": [[0.25, 0.25, 0.5, 0.5]]}},
    )
    found = [in_row(row, GROUPS, 32, "squeeze")(["a", "ball"], 1) for row in (pixels, shares)]
    assert found[0] is not None
    assert found[1] is not None
    assert torch.equal(found[0].box, found[1].box)
    assert found[0].box[8:16, 8:16].all()
    assert found[0].box.sum() == 64
    assert in_row(pixels, GROUPS, 32, "squeeze")(["a", "ball"], 0) is None


def test_any_word_of_any_group_means_whom_the_boxes_or_the_mask_mark(tmp_path: Path) -> None:
    mask = np.zeros((40, 80), np.uint8)
    mask[20:, 40:] = 255
    (tmp_path / "masks").mkdir()
    Image.fromarray(mask).save(tmp_path / "masks" / "m.png")
    boxed, masked, bare = rows_of(
        tmp_path,
        {"boxes": {"boy": [[0.5, 0.5, 1, 1]]}},
        {"mask_file_name": "masks/m.png"},
        {},
    )
    for row in (boxed, masked):
        for word in ("man", "boy", "woman"):
            region = in_row(row, GROUPS, 32, "squeeze")([word], 0)
            assert region is not None
            assert region.box[16:, 16:].all()
            assert region.box.sum() == 256
    assert in_row(bare, GROUPS, 32, "squeeze")(["man"], 0) is None


def test_hidden_rows_lose_just_what_is_marked(tmp_path: Path) -> None:
    marked = rows_of(tmp_path, {"boxes": {"man": [[0.5, 0, 1, 1]]}}, {}, {"boxes": {"cat": []}})
    pictures = torch.randint(0, 256, (3, 3, 16, 16), generator=torch.Generator().manual_seed(0))
    pictures = pictures.to(torch.uint8)
    hidden, gone = HiddenRows(pictures, marked, GROUPS, 16, "squeeze")[torch.tensor([1, 0, 2])]
    assert gone.tolist() == [False, True, False]
    assert torch.equal(hidden[[0, 2]], pictures[[1, 2]])
    assert torch.equal(hidden[1, :, :, :8], pictures[0, :, :, :8])
    mean = pictures[0, :, :, :8].float().mean(dim=(1, 2)).round().to(torch.uint8)
    assert torch.equal(hidden[1, :, :, 8:], mean[:, None, None].expand(3, 16, 8))


def test_what_is_hidden_is_known_by_its_bytes_and_not_by_its_place(tmp_path: Path) -> None:
    def found(name: str, dark: int) -> str:
        (tmp_path / name).mkdir(exist_ok=True)
        mask = np.full((40, 80), 255, np.uint8)
        mask[:dark] = 0
        Image.fromarray(mask).save(tmp_path / name / "m.png")
        marked = rows_of(tmp_path / name, {"mask_file_name": "m.png"})
        return HiddenRows(torch.zeros(1), marked, GROUPS, 16, "crop").fingerprint()

    assert found("here", 3) == found("there", 3) != found("here", 4)


def test_hidden_scenes_do_not_tell_the_group() -> None:
    scenes = [shapes.scene("biased-train", index, HOW) for index in range(4)]
    one = HiddenScenes.of(scenes, 64)
    other = HiddenScenes.of([shapes.swapped(scene) for scene in scenes], 64)
    some = torch.tensor([2, 0])
    assert torch.equal(one[some][0], other[some][0])
    assert one[some][1].all()
    assert torch.equal(one[some][0][1], torch.from_numpy(shapes.hidden(scenes[0])).permute(2, 0, 1))


def test_nothing_to_hide_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no row marks whom to hide.*boy, man, woman"):
        HiddenRows(torch.zeros(1), rows_of(tmp_path, {}), GROUPS, 16, "crop")


@pytest.mark.parametrize("boxes", [[1, 2], {"man": [[1, 2, 3]]}, {"man": "x"}, {"man": [[None]]}])
def test_boxes_that_are_none_are_refused_with_their_place(tmp_path: Path, boxes: object) -> None:
    (row,) = rows_of(tmp_path, {"boxes": boxes})
    with pytest.raises(DataError, match=r"metadata.jsonl, row 1: 'boxes'"):
        marked_boxes(row)


def test_a_row_is_of_the_group_that_it_names_by_any_word(tmp_path: Path) -> None:
    boy, none, odd = rows_of(tmp_path, {"group": "Boy"}, {}, {"group": "cat"})
    assert group_of(boy, GROUPS) == "man"
    assert group_of(none, GROUPS) is None
    assert group_of(odd, GROUPS) is None


def test_a_mask_of_another_shape_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 40), 255, np.uint8)).save(tmp_path / "m.png")
    (row,) = rows_of(tmp_path, {"mask_file_name": "m.png"})
    with pytest.raises(DataError, match=r"row 1: the mask .*m.png has other proportions"):
        in_row(row, GROUPS, 16, "crop")
