"""Bad rows of tables are told by file and line, with all that is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saccade.data.images.cache import CacheSettings
from saccade.data.readers import LabelColumns, label_splits, read_labelled
from saccade.data.readers.images.cached import cached_images
from saccade.errors import DataError
from tests.data.images_made import in_folder, picture, rows
from tests.data.labels_made import hugging_face, saved_to_disk

PICTURES = {f"{name}.png": picture(seed) for seed, name in enumerate("ab")}


def refusal(data: Path, *, skip_bad: int = 0) -> str:
    with pytest.raises(DataError) as caught:
        read_labelled(data, "train", skip_bad=skip_bad)
    return str(caught.value)


BAD: list[tuple[dict[str, object], str]] = [
    ({"image": "b.png"}, "missing key: no 'label'; it has 'image'"),
    ({"label": "x"}, "missing key: no 'image'; it has 'label'"),
    ({"image": "b.png", "label": None}, "no label: 'label' holds none"),
    ({"image": "b.png", "label": float("nan")}, "no label: 'label' holds none"),
    ({"image": "b.png", "label": " "}, "no label: 'label' is empty"),
    ({"image": "b.png", "label": ["x", ""]}, "no label: 'label' is empty"),
    (
        {"image": "b.png", "label": {}},
        "wrong type: 'label' is an object, not a string, a number or a list of them",
    ),
    ({"image": "b.png", "label": "\ud800"}, "lone surrogate: in 'label', half of a character"),
    ({"image": 3, "label": "x"}, "wrong type: 'image' is a number, not a path or the bytes"),
    ({"image": None, "label": "x"}, "missing image: 'image' holds neither bytes nor a path"),
    ({"image": "lost.png", "label": "x"}, "missing image: 'lost.png' is not in "),
    ({"image": "../b.png", "label": "x"}, "outside the data: '../b.png' is not a plain name"),
    ({"image": "/b.png", "label": "x"}, "outside the data: '/b.png'"),
    (
        {"image": "a.png", "label": "y"},
        "duplicate file_name: 'a.png' was on row 1; put all labels of an image in one list",
    ),
]


def test_bad_rows_are_told_by_file_and_line_and_bounded(tmp_path: Path) -> None:
    said = rows({"image": "a.png", "label": "x"}, *(row for row, _ in BAD)) + b"{\n"
    data = in_folder(tmp_path, {"train.jsonl": said, **PICTURES})
    read = read_labelled(data, "train", skip_bad=len(BAD) + 1)
    assert [problem.line for problem in read.problems] == list(range(2, len(BAD) + 3))
    for problem, (_, reason) in zip(read.problems, BAD):
        assert problem.reason.startswith(reason)
        assert problem.file == str(data / "train.jsonl")
    assert len(read.rows) == 1
    told = refusal(data, skip_bad=len(BAD))
    assert f"{len(BAD) + 1} bad rows" in told


def test_bad_lines_of_csv_are_told(tmp_path: Path) -> None:
    raw = b'file_name,label\na.png,x\n"b.png,x\nb.png\nb.png,x,y\n\nb.png,\n"b.png","x, y"\n\xff\n'
    data = in_folder(tmp_path, {"train.csv": raw, **PICTURES})
    read = read_labelled(data, "train", skip_bad=9)
    kinds = [(problem.line, problem.kind) for problem in read.problems]
    width = "not 2 columns"
    assert kinds == [
        *((3, "not CSV"), (4, width), (5, width), (6, "empty"), (7, "no label")),
        (9, "not UTF-8"),
    ]
    assert [row.extras["labels"] for row in read.rows] == [("x",), ("x, y",)]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x|", "no label: 'label' is 'x|', with nothing on one side of a '|'; take it away"),
        ("['x']", """not JSON: 'label' is "['x']"; write a list as ["cat", "dog"], or cat|dog"""),
    ],
)
def test_a_cell_of_several_labels_that_cannot_be_read_is_shown(
    tmp_path: Path, cell: str, told: str
) -> None:
    raw = f"image,label\na.png,{cell}\nb.png,x\n".encode()
    assert f"train.csv:2: {told}" in refusal(in_folder(tmp_path, {"train.csv": raw, **PICTURES}))


def test_a_row_of_no_known_split_is_told(tmp_path: Path) -> None:
    raw = b"split,image,label\ntrain,a.png,x\nheld out,b.png,y\n"
    data = in_folder(tmp_path, {"all.csv": raw, **PICTURES})
    told = refusal(data)
    assert "all.csv:3: no such split: 'held out' is none of train, valid, test" in told


def test_a_table_of_test_alone_with_paths_of_windows(tmp_path: Path) -> None:
    raw = b"image,label\npng\\a.png,x\npng\\b.png,y\n"
    pictures = {f"png/{name}": raw for name, raw in PICTURES.items()}
    data = in_folder(tmp_path, {"test.csv": raw, "train/c.png": b"", **pictures})
    assert label_splits(data) == ["test"]
    assert [row.image.read() for row in read_labelled(data, "test").rows] == [*PICTURES.values()]
    assert "has no 'train' split with labels" in refusal(data)


def test_what_cannot_be_decoded_counts_as_a_bad_row(tmp_path: Path) -> None:
    images = [PICTURES["a.png"], b"no image", b"", None, PICTURES["b.png"]]
    for name, raw in {
        "x.parquet": hugging_face(images, [0, 1, 1, 1, 0]),
        "x.arrow": saved_to_disk(images, [0, 1, 1, 1, 0])["data.arrow"],
    }.items():
        read = read_labelled(in_folder(tmp_path, {name: raw}) / name, "train", skip_bad=9)
        settings = CacheSettings(size=8)
        kept, cache = cached_images(read, tmp_path / "cache", settings=settings, skip_bad=3)
        assert kept.skipped == {"missing image": 1, "no image": 1, "empty image": 1}
        assert len(cache) == 2
        assert [row.line for row in kept.rows] == [1, 5]


def test_columns_of_other_types_are_refused(tmp_path: Path) -> None:
    for name in ("x.parquet", "x.arrow"):
        pixels = pa.table({"image": [[[1, 2], [3, 4]]], "label": [0]})
        if name == "x.parquet":
            pq.write_table(pixels, tmp_path / name)
        else:
            with pa.ipc.new_stream(str(tmp_path / name), pixels.schema) as sink:
                sink.write_table(pixels)
        told = refusal(tmp_path / name)
        assert "1: wrong type: 'image' is a list, not a path or the bytes of a file" in told


def test_a_whole_path_into_the_data_is_one_below_it(tmp_path: Path) -> None:
    data = in_folder(
        tmp_path / "data", {"img/a.png": PICTURES["a.png"], "b.png": PICTURES["b.png"]}
    )
    named = [data / "img/a.png", data / "b.png", tmp_path / "else.png"]
    (data / "train.csv").write_text("file_name,label\n" + "".join(f"{one},x\n" for one in named))
    read = read_labelled(data, "train", skip_bad=1)
    assert [row.image.path for row in read.rows] == named[:2]
    assert "outside the data" in read.problems[0].reason
    assert "write where it lies from there, as images/1.jpg" in read.problems[0].reason


ONE_HOT = "image,dog,cat, cow 10,cow 9\na,1,0,0,0\nb.png,0,1.0,1,1\n"
MARKED = [("dog",), ("cat", "cow 9", "cow 10")]


@pytest.mark.parametrize("name", ["train.csv", "train/_classes.csv", "x.csv"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_each_class_may_have_a_column_of_0_and_1(tmp_path: Path, name: str, mark: str) -> None:
    images = {str(Path(name).parent / file): raw for file, raw in PICTURES.items()}
    data = in_folder(tmp_path, {name: ONE_HOT.replace(",", mark).encode(), **images})
    read = read_labelled(data, "train")
    assert [row.extras["labels"] for row in read.rows] == MARKED
    assert [row.line for row in read.rows] == [2, 3]


def test_columns_of_classes_are_read_as_pandas_writes_them(tmp_path: Path) -> None:
    """Those of get_dummies are True and False, behind a column without a name: the row's number."""
    raw = b",image,dog,cat\n0,a.png,True,False\n1,b.png,False,True\n"
    read = read_labelled(in_folder(tmp_path, {"train.csv": raw, **PICTURES}), "train")
    assert [row.extras["labels"] for row in read.rows] == [("dog",), ("cat",)]


def test_columns_of_classes_may_be_named_and_others_are_left_aside(tmp_path: Path) -> None:
    raw = b"age,dog,image,cat,split\n70,1,a.png,0,train\n7,0,b.png,1,test\n"
    data = in_folder(tmp_path, {"all.csv": raw, **PICTURES})
    assert "has no column for the label in its first line; it has 'age', 'dog'" in refusal(data)
    assert "or several of 0 and 1, as --label-column cat,dog" in refusal(data)
    columns = LabelColumns(label="dog, cat")
    assert label_splits(data, columns) == ["train", "test"]
    assert read_labelled(data, "test", columns=columns).rows[0].extras["labels"] == ("cat",)
    with pytest.raises(DataError, match="has no column 'cow'"):
        read_labelled(data, "train", columns=LabelColumns(label="dog,cow"))


def test_what_is_neither_0_nor_1_is_a_bad_row(tmp_path: Path) -> None:
    raw = b"image,dog,cat\na.png,1,0\nb.png,2,0\n"
    read = read_labelled(in_folder(tmp_path, {"train.csv": raw, **PICTURES}), "train", skip_bad=1)
    assert [(p.line, p.reason) for p in read.problems] == [
        (3, "not 0 or 1: 'dog' is '2'; a column of a class has 0 or 1")
    ]
