"""Images inside Parquet and Arrow: read where they lie; damage never kills the process."""

import io
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.images.members import Member
from saccade.data.readers import LabelColumns, label_splits, read_labelled
from saccade.data.readers.images.classes.parquet import RowMember
from saccade.errors import DataError
from tests.data.images_made import in_folder
from tests.data.labels_made import featured, hugging_face, saved_to_disk

IMAGES = [bytes([65 + n % 26]) * (n + 1) for n in range(300)]
LABELS = [n % 2 for n in range(300)]
SMALL = {
    "x.parquet": hugging_face([b"abc", None, b""], [0, 1, 1]),
    "x.arrow": saved_to_disk([b"abc", None, b""], [0, 1, 1])["data.arrow"],
}


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("order", ["rows", "reverse", "random"])
def test_rows_may_be_fetched_in_any_order_and_by_many_threads(
    name: str, order: str, tmp_path: Path
) -> None:
    big = hugging_face(IMAGES, LABELS) if name == "x.parquet" else stream(featured(IMAGES, LABELS))
    in_folder(tmp_path, {name: big})
    read = read_labelled(tmp_path / name, "train")
    numbers = list(range(len(IMAGES)))
    if order == "reverse":
        numbers.reverse()
    if order == "random":
        random.Random(0).shuffle(numbers)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: read.rows[n].image.read(), numbers))
    assert found == [IMAGES[n] for n in numbers]
    assert [row.extras["labels"] for row in read.rows[:2]] == [("cat",), ("dog",)]


def test_an_image_in_arrow_is_a_stretch_of_the_file(tmp_path: Path) -> None:
    in_folder(tmp_path, {"x.arrow": SMALL["x.arrow"]})
    image = read_labelled(tmp_path / "x.arrow", "train", skip_bad=1).rows[0].image
    assert type(image) is Member
    assert (tmp_path / "x.arrow").read_bytes()[image.offset :][: image.size] == b"abc"


def test_a_dataset_saved_by_itself_is_all_train_whatever_its_parts(tmp_path: Path) -> None:
    files = {f"{n}.arrow": saved_to_disk([IMAGES[n]], [n])["data.arrow"] for n in range(2)}
    state = {"_data_files": [{"filename": name} for name in files]}
    data = in_folder(tmp_path, {**files, "state.json": json.dumps(state).encode()})
    assert label_splits(data) == ["train"]
    read = read_labelled(data, "train")
    assert [row.image.read() for row in read.rows] == IMAGES[:2]
    assert read.labels == ["cat", "dog"]


@pytest.mark.parametrize("name", SMALL)
def test_without_pyarrow_one_is_told_how_to_install_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_folder(tmp_path, {name: SMALL[name]})
    for part in ("ipc", "lib", "parquet"):
        monkeypatch.setitem(sys.modules, f"pyarrow.{part}", None)
    with pytest.raises(DataError, match=r"not installed: pip install 'saccade\[data\]'"):
        read_labelled(tmp_path / name, "train")


def test_a_table_that_was_written_to_is_told(tmp_path: Path) -> None:
    path = in_folder(tmp_path, {"x.parquet": SMALL["x.parquet"]}) / "x.parquet"
    image = read_labelled(path, "train", skip_bad=1).rows[0].image
    assert isinstance(image, RowMember)
    path.write_bytes(hugging_face([b"xyz"], [0]))
    with pytest.raises(DataError, match="leave the data alone while it is in use"):
        image.read()


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_streams_are_refused_before_they_are_unpacked(
    compression: str, tmp_path: Path
) -> None:
    table = featured([b"x" * 1000], [0])
    coded = table.set_column(1, "label", table["label"].dictionary_encode())
    for number, one in enumerate((table, coded)):
        path = tmp_path / f"{number}.arrow"
        path.write_bytes(stream(one, compression))
        with pytest.raises(DataError, match=r"is compressed, .* write it as Parquet"):
            read_labelled(path, "train")
        path.write_bytes(stream(one))
        assert read_labelled(path, "train").rows[0].image.read() == b"x" * 1000


NAMED = [(0, "cat"), (1, "dog"), ([0, 1], "cat dog"), ([], ""), (-1, None), (2, None)]


@pytest.mark.parametrize(("value", "labels"), NAMED)
def test_numbers_of_classes_become_their_names(
    value: int | list[int], labels: str | None, tmp_path: Path
) -> None:
    said = [value, [0] if isinstance(value, list) else 0]
    in_folder(tmp_path, {"x.parquet": hugging_face([b"a", b"b"], said)})
    read = read_labelled(tmp_path / "x.parquet", "train", skip_bad=labels is None)
    if labels is None:
        assert read.problems[0].kind == ("no label" if value == -1 else "no such class")
    else:
        assert read.rows[0].extras["labels"] == tuple(labels.split())


spots = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4)


@settings(deadline=None, max_examples=150)
@given(name=st.sampled_from(sorted(SMALL)), spots=spots, cut=st.integers(0, 40))
def test_a_damaged_table_is_refused_or_read(
    name: str, spots: list[tuple[int, int]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = bytearray(SMALL[name])
    for place, value in spots:
        raw[place % len(raw)] = value
    path = tmp_path_factory.mktemp("x") / name
    path.write_bytes(raw[: len(raw) - cut])
    try:
        label_splits(path)
        for row in read_labelled(path, "train", skip_bad=9).rows:
            row.image.read()
    except DataError as error:
        str(error).encode()


likely = [
    *(b"\n", b",", b";", b"\t", b'"', b"|", b"[", b"]", b"{", b"}", b":", b"\0", b"\xff", b"\r"),
    *(b"image", b"label", b"split", b"train", b"a.png", b"../a.png", b"1e999", b"9" * 5000, b"-1"),
    *(
        b'{"image": "a.png", "label": 3}\n',
        b"image,label\n",
        b"image\tlabel\n",
        b"null",
        b"\\ud800",
    ),
    *(b'"images":', b'"annotations":', b'"categories":', b'"id":', b"[{}]", b'"category_id"'),
]
content = st.lists(st.sampled_from(likely) | st.binary(max_size=3), max_size=25).map(b"".join)


@settings(deadline=None, max_examples=150)
@given(form=st.sampled_from(["csv", "tsv", "jsonl", "json"]), raw=content, headed=st.booleans())
def test_any_bytes_are_read_or_refused(
    form: str, raw: bytes, headed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    head = {"csv": b"image,label,split\n", "tsv": b"image\tlabel\n"}.get(form, b"")
    folder = in_folder(
        tmp_path_factory.mktemp("x"), {f"x.{form}": head * headed + raw, "a.png": b""}
    )
    for columns in (LabelColumns(), LabelColumns(image="a.png", label="3", separator="")):
        try:
            label_splits(folder / f"x.{form}", columns)
            read_labelled(folder / f"x.{form}", "train", columns=columns, skip_bad=99)
        except DataError as error:
            str(error).encode()
