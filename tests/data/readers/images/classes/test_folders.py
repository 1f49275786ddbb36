"""What lies in folders of classes and should not."""

from pathlib import Path

import pytest

from saccade.data.readers import label_splits, read_labelled
from saccade.errors import DataError
from tests.data.images_made import in_folder, picture

PICTURES = {f"{name}.png": picture(seed) for seed, name in enumerate("ab")}


def test_bad_rows_of_class_folders(tmp_path: Path) -> None:
    data = in_folder(
        tmp_path / "data",
        {
            "train/cat/a.png": PICTURES["a.png"],
            "train/cat/b.heic": b"",
            "train/cat/notes.txt": b"",
            "train/dog/.hidden.png": b"",
            "train/stray.png": b"",
            "train/__MACOSX/a.png": b"",
            "valid/cat/b.png": PICTURES["b.png"],
        },
    )
    (data / "valid" / "dog").mkdir()
    (data / "train" / "cat" / "loop").symlink_to(data / "train")
    (data / "train" / "cat" / "out.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "secret.png").write_bytes(b"")
    read = read_labelled(data, "train", skip_bad=5)
    assert [row.extras["labels"] for row in read.rows] == [("cat",)]
    root = f"{data}/train"
    assert [(p.file.removeprefix(root), p.reason.partition(";")[0]) for p in read.problems] == [
        ("/stray.png", "no class: it lies beside the folders of classes"),
        (
            "/cat/b.heic",
            "no image: 'b.heic' ends in none of .jpg, .jpeg, .png, .webp, .gif, .bmp, .jfif, "
            ".jpe, .tif, .tiff",
        ),
        ("/cat/out.png", "outside the data: 'train/cat/out.png' is a link that leads out of it"),
        ("/cat/loop", "not a file: a link to a folder, which may lead in circles"),
        ("/dog", "empty class: no image in it"),
    ]
    assert len(read_labelled(data, "valid").rows) == 1  # an empty class there harms nobody


def labelled(place: Path, *files: str) -> Path:
    return in_folder(place / "data", {name: picture(seed) for seed, name in enumerate(files)})


def test_folders_that_say_set_or_images_after_the_split_are_splits(tmp_path: Path) -> None:
    for mark in ("ing_set", "_images", " data", "-set"):
        place, test = tmp_path / mark, f"Test{mark}"
        data = labelled(
            place, f"train{mark}/cat/a.png", f"train{mark}/dog/b.png", f"{test}/cat/c.png"
        )
        assert label_splits(data) == ["train", "test"]
        assert read_labelled(data, "train").labels == ["cat", "dog"]
        assert [row.image.path.name for row in read_labelled(data, "test").rows] == ["c.png"]


def test_the_plain_name_of_a_split_comes_first(tmp_path: Path) -> None:
    data = labelled(tmp_path, "train_images/cat/a.png", "train/dog/b.png", "test/dog/c.png")
    assert read_labelled(data, "train").labels == ["dog"]


def test_a_class_may_be_named_as_a_split_is(tmp_path: Path) -> None:
    names = [f"{label}/{number}.png" for label in ("bus", "car", "train") for number in (1, 2)]
    classes = ["bus", "car", "train"]
    split = labelled(
        tmp_path / "split", *(f"{s}/{name}" for s in ("train", "test") for name in names)
    )
    assert read_labelled(split, "train").labels == read_labelled(split, "test").labels == classes
    alone = labelled(tmp_path / "alone", *names)
    assert read_labelled(alone, "train").labels == classes
    doubled = labelled(tmp_path / "doubled", "train/train/cat/a.png", "train/train/dog/b.png")
    assert read_labelled(doubled, "train").labels == ["cat", "dog"]


def test_images_beside_those_of_a_test_without_labels_are_no_class(tmp_path: Path) -> None:
    data = labelled(tmp_path, "train/a.png", "test1/b.png", "more/c.png")
    with pytest.raises(DataError, match="train has no folder for a class"):
        read_labelled(data, "train")


def test_jpegs_of_any_ending_are_images(tmp_path: Path) -> None:
    data = labelled(tmp_path, "cat/a.jfif", "cat/b.JPE", "dog/c.jpeg")
    assert len(read_labelled(data, "train").rows) == 3


def test_folders_of_classes_may_lie_beside_those_of_annotations(tmp_path: Path) -> None:
    files = {f"Images/n02-{c}/{n}.png": picture(n) for n, c in enumerate(("cat", "dog"))}
    notes = {f"Annotation/n02-{name}/1": b"<annotation/>" for name in ("cat", "dog")}
    read = read_labelled(in_folder(tmp_path, {**files, **notes, "README": b""}), "train")
    assert read.labels == ["n02-cat", "n02-dog"]
    assert len(read.rows) == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("train-images-idx3-ubyte.gz", "MNIST's own form"),
        ("cifar-10-batches-py/data_batch_1", "CIFAR's pickles, which may run code"),
        ("cifar-10-batches-bin/data_batch_1.bin", "CIFAR's own form"),
        ("train.pkl", "a pickle, which may run code"),
        ("bloodmnist.npz", "an array, and no images"),
        ("digits.h5", "a form of another library"),
    ],
)
def test_forms_that_are_not_read_are_known_and_the_way_out_is_named(
    name: str, told: str, tmp_path: Path
) -> None:
    data = in_folder(tmp_path, {name: b"\0", "readme.html": b""})
    with pytest.raises(DataError) as raised:
        read_labelled(data, "train")
    assert str(raised.value).endswith(
        f" has {Path(name).name}: {told}, which is not read; write it as images in folders of "
        "classes (train/cat/1.png), or fetch it as Parquet, as Hugging Face has it"
    )


@pytest.mark.parametrize("beside", ["boxes.mat", "train.pkl", "features.npy", "digits.h5"])
def test_arrays_beside_images_deeper_in_a_class_are_left_alone(beside: str, tmp_path: Path) -> None:
    data = labelled(tmp_path, "cat/tom/1.png", "dog/rex/1.png")
    (data / beside).write_bytes(b"\0")
    assert read_labelled(data, "train").labels == ["cat", "dog"]


def test_a_list_that_is_a_link_out_of_the_data_is_refused(tmp_path: Path) -> None:
    data = labelled(tmp_path, "images/001.Auk/a.png")
    (tmp_path / "images.txt").write_text("1 001.Auk/a.png\n")
    (data / "images.txt").symlink_to(tmp_path / "images.txt")
    with pytest.raises(DataError) as raised:
        read_labelled(data, "train")
    assert str(raised.value) == (
        f"{data}/images.txt cannot be read: outside the data: 'images.txt' is a link that leads "
        "out of it; copy the file into it"
    )


def test_lists_beside_the_folders_part_the_images(tmp_path: Path) -> None:
    """As CUB-200 is given out."""
    images = ["001.Auk/a.png", "001.Auk/b.png", "002.Owl/a.png", "002.Owl/b.png"]
    data = labelled(tmp_path, *(f"CUB/images/{name}" for name in images))
    numbered = "".join(f"{n} {name}\n" for n, name in enumerate(images, start=1))
    (data / "CUB" / "images.txt").write_text(numbered)
    (data / "CUB" / "train_test_split.txt").write_text("1 1\n2 0\n3 0\n4 1\n")
    (data / "CUB" / "parts").mkdir()
    assert label_splits(data) == ["train", "test"]
    for split, expected in (
        ("train", ["001.Auk/a", "002.Owl/b"]),
        ("test", ["001.Auk/b", "002.Owl/a"]),
    ):
        found = [row.image.name.removesuffix(".png") for row in read_labelled(data, split).rows]
        assert [name.partition("images/")[2] for name in found] == expected
    (data / "CUB" / "train_test_split.txt").unlink()
    assert (label_splits(data), len(read_labelled(data, "train").rows)) == (["train"], 4)
