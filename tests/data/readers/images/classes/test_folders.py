"""What lies in folders of classes and should not."""

from pathlib import Path

from saccade.data.readers import read_labelled
from tests.data.images_made import in_folder, picture

PICTURES = {f"{name}.png": picture(seed) for seed, name in enumerate("ab")}


def test_bad_rows_of_class_folders(tmp_path: Path) -> None:
    data = in_folder(
        tmp_path / "data",
        {
            "train/cat/a.png": PICTURES["a.png"],
            "train/cat/b.tif": b"",
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
        ("/cat/b.tif", "no image: 'b.tif' ends in none of .jpg, .jpeg, .png, .webp, .gif, .bmp"),
        ("/cat/out.png", "outside the data: 'train/cat/out.png' is a link that leads out of it"),
        ("/cat/loop", "not a file: a link to a folder, which may lead in circles"),
        ("/dog", "empty class: no image in it"),
    ]
    assert len(read_labelled(data, "valid").rows) == 1  # an empty class there harms nobody
