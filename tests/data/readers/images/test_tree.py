"""Archives are read where they lie; what is crafted or damaged in them is refused."""

import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.images.decode import decode
from saccade.data.images.members import Member, ZipMember
from saccade.data.readers import image_splits, read_images, read_labelled
from saccade.data.readers.images.tree import inner, tree_of
from saccade.data.readers.report import BadRow
from saccade.errors import DataError
from tests.data.images_made import (
    CAPTIONS,
    PICTURES,
    coco,
    in_folder,
    in_tar,
    in_zip,
    karpathy,
    metadata,
    rows,
)


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    return str(caught.value)


def test_a_link_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(PICTURES["a.png"])
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"{kind[0]}.png")
            info.type, info.linkname = kind, str(tmp_path / "secret.png")
            archive.addfile(info)
    tree, _ = tree_of(tmp_path / "x.tar")
    for name in tree.files(""):
        with pytest.raises(BadRow, match=r"not a file: .* is a link or a device"):
            tree.member(name)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as zipped:
        info = zipfile.ZipInfo("s.png")
        info.external_attr = 0o120777 << 16
        zipped.writestr(info, str(tmp_path / "secret.png"))
    with pytest.raises(BadRow, match="not a file"):
        tree_of(tmp_path / "x.zip")[0].member("s.png")


@pytest.mark.parametrize("pack", [in_tar, in_zip])
def test_names_that_lead_out_are_no_members(
    tmp_path: Path, pack: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    names = ["../up.png", "/top.png", "a/../../up.png", "C:/x.png", "./fine.png", "deep/er.png"]
    tree, base = tree_of(pack(tmp_path / f"x.{pack.__name__[3:]}", dict.fromkeys(names, b"x")))
    assert (tree.files(base), tree.folders(base)) == (["fine.png"], ["deep"])
    assert all(tree.member(name) is None for name in names[:4])


@given(name=st.text(st.sampled_from("ab./\\:\0é "), max_size=12))
def test_an_inner_name_stays_inside_whoever_reads_it(name: str) -> None:
    try:
        found = inner(name)
    except BadRow:
        return
    root = Path("/data/root")
    assert (root / found).resolve().is_relative_to(root)
    assert ".." not in found.replace("\\", "/").split("/")


def test_members_of_one_archive_are_found_again_when_it_changes(tmp_path: Path) -> None:
    path = in_tar(tmp_path / "x.tar", {"a.png": b"1"})
    before = tree_of(path)[0].member("a.png")
    in_tar(path, {"b.png": b"1" * 20_000, "a.png": b"22"})
    after = tree_of(path)[0].member("a.png")
    assert before is not None
    assert after is not None
    assert (after.read(), before == after) == (b"22", False)


def test_a_tar_that_leads_backwards_ends(tmp_path: Path) -> None:
    """A header with a negative size sends a trusting reader back to where it was."""
    info = tarfile.TarInfo("a.png")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" + (-1024 & (1 << 88) - 1).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    first = in_tar(tmp_path / "x.tar", {"b.png": b"x"}).read_bytes()[:1024]
    (tmp_path / "x.tar").write_bytes(first + bytes(header) + bytes(1024))
    told = refusal(lambda: tree_of(tmp_path / "x.tar"))
    assert "lead backwards" in told or "is not a whole tar archive" in told


def test_a_zip_that_lies_about_sizes_does_not_burst(tmp_path: Path) -> None:
    bomb = in_zip(tmp_path / "x.zip", {"m": b"", "a.png": bytes(50_000_000)})
    honest = tree_of(bomb)[0].member("a.png")
    assert isinstance(honest, ZipMember)
    assert honest.packed < 100_000
    for size in (0, 99):
        lying = replace(honest, size=size)
        tracemalloc.start()
        assert "its checksum is another" in refusal(lying.read)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
    assert "over 1,000; make it smaller" in refusal(lambda: honest.read(most=1_000))
    wrong = ZipMember(honest.path, "a.png", 99, 0, 5, packed=9, deflated=True)
    assert "is not where" in refusal(wrong.read)


def test_a_file_that_changed_under_us_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"12345")
    member = Member.of(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(b"123")
    assert "has 3 bytes where there were 5" in refusal(member.read)
    (tmp_path / "a.png").unlink()
    assert "cannot be read: No such file" in refusal(member.read)


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("x.tar.gz", b"x", "is compressed as a whole"),
        ("x.tgz", b"x", "is compressed as a whole"),
        ("x.rar", b"x", "read from a folder, .tar, .zip, "),
        ("x.tar", b"x" * 600, "is not a whole tar archive"),
        ("x.tar", b"", "is not a whole tar archive (empty file)"),
        ("x.tar", bytes(1024), "is empty: it holds no files"),
        ("x.zip", b"x", "is not a whole zip archive (File is not a zip file)"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, name: str, raw: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(raw)
    assert told in refusal(lambda: read_images(tmp_path / name, "train"))
    assert told in refusal(lambda: read_labelled(tmp_path / name, "train"))
    assert "does not exist" in refusal(lambda: read_images(tmp_path / "none", "train"))


def test_a_tar_cut_in_the_middle_is_refused(tmp_path: Path) -> None:
    whole = in_tar(tmp_path / "x.tar", {"train/metadata.jsonl": b"x", "a.png": bytes(9_000)})
    raw = whole.read_bytes()[:3_000]
    whole.write_bytes(raw)
    assert "x.tar" in refusal(lambda: read_images(whole, "train"))


def read_every_way(data: Path) -> None:
    """Whatever the readers do with this, they may raise nothing but a DataError."""
    tries: list[Callable[[], object]] = [
        lambda: image_splits(data),
        lambda: read_images(data, "train"),
        lambda: [decode(row.image) for row in read_images(data, "train", skip_bad=99).rows],
        lambda: read_images(data, "valid", skip_bad=99),
        lambda: [decode(row.image) for row in read_labelled(data, "train", skip_bad=99).rows],
    ]
    for attempt in tries:
        try:
            attempt()
        except DataError as error:
            str(error).encode()


FRAGMENTS = [
    *(
        b"\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"',
        b"\0",
        b"\xff",
        b"null",
        b"NaN",
        b"9" * 4_400,
    ),
    *(b'{"file_name": "a.png", "text": "x"}\n', b'{"file_name": "\\ud800", "text": "x"}\n'),
    *(b'{"file_name": "', b'"captions": ["x"]}\n', b'"file_name"', b"../", b"[" * 3_000),
    *(b'"images": [', b'"annotations": [', b'{"id": 1, "file_name": "a.png"}', b'"sentences"'),
    *(b'{"image_id": 1, "caption": "x"}', b'{"images": [{"sentences": 1, "split": "train"}]}'),
    coco(*CAPTIONS),
    karpathy(dict.fromkeys(CAPTIONS, "train")),
]
likely = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=4), max_size=12).map(b"".join)
spots = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), max_size=5)


@settings(max_examples=100)
@given(
    raw=likely | st.binary(max_size=80),
    name=st.sampled_from(["train.jsonl", "train.json", "x.json"]),
)
def test_any_bytes_of_metadata(raw: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = in_folder(Path(folder), {name: raw, **PICTURES})
        read_every_way(data)
        read_every_way(data / name)


def changed(raw: bytes, spots: list[tuple[int, int]], cut: int) -> bytes:
    new = bytearray(raw)
    for place, value in spots:
        new[place % len(raw)] = value
    return bytes(new[: len(raw) - cut % len(raw)])


@pytest.mark.parametrize("pack", [in_tar, in_zip])
@settings(max_examples=100)
@given(spots=spots, cut=st.just(0) | st.integers(0, 20_000))
def test_any_damage_to_an_archive(
    pack: Callable[[Path, dict[str, bytes]], Path], spots: list[tuple[int, int]], cut: int
) -> None:
    files = {"train.jsonl": metadata(*CAPTIONS), **PICTURES, "cat/1.png": PICTURES["a.png"]}
    with tempfile.TemporaryDirectory() as folder:
        data = pack(Path(folder) / f"x.{pack.__name__[3:]}", files)
        data.write_bytes(changed(data.read_bytes(), spots, cut))
        read_every_way(data)


def test_names_that_are_not_utf8_can_be_told(tmp_path: Path) -> None:
    odd = bytes(tmp_path / "cat") + b"/\xff.heic"
    (tmp_path / "cat").mkdir()
    with open(odd, "wb") as file:
        file.write(b"x")
    with open(odd.replace(b"heic", b"png"), "wb") as file:
        file.write(b"x")
    told = refusal(lambda: read_labelled(tmp_path, "train"))
    assert told.encode()
    row = read_labelled(tmp_path, "train", skip_bad=1).rows[0]
    assert row.image.read() == b"x"
    assert refusal(lambda: decode(row.image)).encode()


def test_a_zip_that_does_not_say_so_has_names_in_utf8_all_the_same(tmp_path: Path) -> None:
    """Info-ZIP and macOS leave the flag out; what is no UTF-8 is in the code page of DOS."""
    path = in_zip(tmp_path / "x.zip", {"train/Kätzchen/a.png": PICTURES["a.png"]})
    raw = path.read_bytes()
    for head in (b"PK\x03\x04\x14\x00", b"PK\x01\x02\x14\x03\x14\x00"):
        assert head + b"\x00\x08" in raw
        raw = raw.replace(head + b"\x00\x08", head + b"\x00\x00")
    path.write_bytes(raw)
    row = read_labelled(path, "train").rows[0]
    assert row.extras["labels"] == ("Kätzchen",)
    assert row.image.read() == PICTURES["a.png"]
    path.write_bytes(raw.replace("Kä".encode(), b"K\x84_"))
    assert read_labelled(path, "train").labels == ["Kä_tzchen"]


def test_a_zip_of_windows_parts_its_folders(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in ("train\\cat\\", "train\\cat\\a.png"):
            info = zipfile.ZipInfo(name)
            info.create_system = 0
            archive.writestr(info, PICTURES["a.png"] if name.endswith("png") else b"")
    read = read_labelled(tmp_path / "x.zip", "train")
    assert read.labels == ["cat"]
    assert read.rows[0].image.read() == PICTURES["a.png"]


@pytest.mark.parametrize("pack", [in_folder, in_zip])
def test_an_image_is_found_whichever_way_its_accents_are_spelt(
    tmp_path: Path, pack: Callable[..., Path]
) -> None:
    for held, said in (("\u00fc.png", "u\u0308.png"), ("u\u0308.png", "\u00fc.png")):
        row = rows({"file_name": said, "text": "x"})
        data = pack(tmp_path / f"{len(held)}.zip", {"train.jsonl": row, held: PICTURES["a.png"]})
        assert read_images(data, "train").rows[0].image.read() == PICTURES["a.png"]


def test_an_odd_row_in_a_large_archive_is_read_alone(tmp_path: Path) -> None:
    """Reading one member touches only its own stretch: the rest may be damaged."""
    path = in_tar(
        tmp_path / "x.tar", {"train.jsonl": rows({"file_name": "b.png", "text": "x"}), **PICTURES}
    )
    row = read_images(path, "train").rows[0]
    raw = bytearray(path.read_bytes())
    stretch = bytes(raw[row.image.offset : row.image.offset + row.image.size])
    path.write_bytes(bytes(row.image.offset) + stretch)
    assert row.image.read() == PICTURES["b.png"] == stretch
