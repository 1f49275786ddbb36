"""Decoded once, shared by all, whole or not there."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from saccade.data.images import cache as module
from saccade.data.images.cache import CacheSettings, ImageCache, fingerprint, image_cache
from saccade.data.images.decode import decode
from saccade.data.images.members import Member
from saccade.data.images.square import fit_square
from saccade.data.readers import ImagesRead, read_images
from saccade.data.readers.images.cached import cached_images
from saccade.errors import ConfigError, DataError, WriteError
from tests.data.images_made import in_tar, picture, rows

SMALL = CacheSettings(size=6)


def members(folder: Path, count: int = 20, *, bad: tuple[int, ...] = ()) -> list[Member]:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        raw = b"broken" if number in bad else picture(number, side=8 + number % 3)
        (folder / f"{number}.png").write_bytes(raw)
    return [Member.of(folder / f"{number}.png") for number in range(count)]


def expected(images: list[Member], settings: CacheSettings) -> Tensor:
    return torch.stack([fit_square(decode(image), settings.size, settings.fit) for image in images])


@pytest.mark.parametrize("threads", [1, 3])
def test_it_holds_every_image_in_order(tmp_path: Path, threads: int) -> None:
    images, told = members(tmp_path / "data"), list[tuple[int, int]]()
    settings = replace(SMALL, threads=threads)
    cache = image_cache(
        images, tmp_path / "kept", settings=settings, progress=lambda *done: told.append(done)
    )
    assert torch.equal(cache[torch.arange(20)], expected(images, SMALL))
    some = torch.tensor([7, 7, 0])
    assert torch.equal(cache[some], expected(images, SMALL)[some])
    assert told == [(n, 20) for n in range(1, 21)]
    assert (len(cache), cache.bad) == (20, {})
    cache[some][:] = 0  # a copy: the next reader is not harmed
    assert torch.equal(cache[some], expected(images, SMALL)[some])


def test_it_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = members(tmp_path / "data")
    first = image_cache(images, tmp_path / "kept", settings=SMALL)
    monkeypatch.setattr(module, "decode", lambda *_, **__: pytest.fail("decoded again"))
    again = image_cache(images, tmp_path / "kept", settings=replace(SMALL, threads=1))
    assert torch.equal(first[torch.arange(20)], again[torch.arange(20)])


def test_another_file_size_or_order_is_another_cache(tmp_path: Path) -> None:
    images = members(tmp_path)
    base = fingerprint(images, SMALL)
    os.utime(tmp_path / "3.png", ns=(1, 1))
    touched = [Member.of(image.path) for image in images]
    others = [
        fingerprint(images[::-1], SMALL),
        fingerprint(images[:-1], SMALL),
        fingerprint(touched, SMALL),
        fingerprint([replace(images[0], size=1), *images[1:]], SMALL),
        fingerprint([replace(images[0], offset=1), *images[1:]], SMALL),
        fingerprint(images, replace(SMALL, size=7)),
        fingerprint(images, replace(SMALL, fit="pad")),
    ]
    assert len({base, *others}) == 8
    assert fingerprint(images, replace(SMALL, threads=9)) == base


def read(folder: Path, count: int, *, bad: tuple[int, ...], skip_bad: int) -> ImagesRead:
    members(folder, count, bad=bad)
    said = [{"file_name": f"{n}.png", "text": f"t{n}"} for n in range(count)]
    (folder / "train.jsonl").write_bytes(rows(*said, {"file_name": "none.png", "text": "x"}))
    return read_images(folder, "train", skip_bad=skip_bad)


def test_a_broken_image_is_a_bad_row(tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = read(data, 6, bad=(0, 4), skip_bad=3)
    kept, cache = cached_images(before, tmp_path / "kept", settings=SMALL, skip_bad=3)
    assert [row.captions for row in kept.rows] == [("t1",), ("t2",), ("t3",), ("t5",)]
    good = [row.image for row in kept.rows]
    assert torch.equal(cache[torch.arange(4)], expected(good, SMALL))
    assert kept.skipped == {"missing image": 1, "no image": 2}
    assert kept.summary().endswith("3 bad rows skipped (2 no image, 1 missing image)")
    assert [(problem.line, problem.file) for problem in kept.problems] == [
        (line, str(data / "train.jsonl")) for line in (7, 1, 5)
    ]
    with pytest.raises(DataError) as caught:
        cached_images(before, tmp_path / "kept", settings=SMALL, skip_bad=2)
    assert "3 bad rows (2 no image, 1 missing image)" in str(caught.value)
    assert f"{data}/train.jsonl:5: no image: it does not begin like" in str(caught.value)


def total(cache: ImageCache) -> int:
    return int(cache[torch.arange(len(cache))].long().sum())


@pytest.mark.slow
def test_it_may_be_sent_to_other_processes(tmp_path: Path) -> None:
    images = members(tmp_path / "data", bad=(2,))
    cache = image_cache(images, tmp_path / "kept", settings=SMALL)
    assert len(pickle.dumps(cache)) < 1_000  # the place, not the images
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(total, [cache]) == [total(cache)]


def test_images_of_an_archive_are_cached_too(tmp_path: Path) -> None:
    files = {f"{n}.png": picture(n) for n in range(3)}
    said = rows(*({"file_name": name, "text": "x"} for name in files))
    found = read_images(in_tar(tmp_path / "x.tar", {**files, "train.jsonl": said}), "train")
    _, cache = cached_images(found, tmp_path / "kept", settings=CacheSettings(size=8))
    assert torch.equal(cache[torch.arange(3)], torch.stack([decode(r) for r in files.values()]))


@pytest.mark.parametrize("harm", ["cut", "empty", "sums", "bad", "index", "count"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, harm: str) -> None:
    images = members(tmp_path / "data", bad=(19,))
    home = image_cache(images, tmp_path / "kept", settings=SMALL).folder
    names = {"cut": "pixels", "empty": "pixels", "sums": "sums", "bad": "bad"}
    file = home / names.get(harm, "index.json")
    raw = file.read_bytes()
    new = {"cut": raw[:-1], "empty": b"", "index": b"{", "count": b'{"count": 3, "bad": {}}'}
    new |= {"sums": bytes(len(raw)), "bad": b'[3, "made up"]\n'}
    file.write_bytes(new[harm])
    again = image_cache(images, tmp_path / "kept", settings=SMALL)
    assert torch.equal(again[torch.arange(19)], expected(images[:19], SMALL))
    assert list(again.bad) == [19]


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("where", [0.3, 0.6, 0.999])
def test_no_flipped_bit_of_a_pixel_is_learnt_from_and_the_way_out_works(
    tmp_path: Path, bit: int, where: float
) -> None:
    images, every = members(tmp_path / "data"), torch.arange(20)
    home = image_cache(images, tmp_path / "kept", settings=SMALL).folder
    flip(home / "pixels", where, bit)
    cache = image_cache(images, tmp_path / "kept", settings=SMALL)
    with pytest.raises(DataError, match="damaged and given up; run the same again"):
        cache[every]
    again = image_cache(images, tmp_path / "kept", settings=SMALL)
    assert torch.equal(again[every], expected(images, SMALL))


@pytest.mark.parametrize("where", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_no_flipped_bit_of_the_index_is_believed(tmp_path: Path, where: float) -> None:
    images = members(tmp_path / "data", bad=(3,))
    first = image_cache(images, tmp_path / "kept", settings=SMALL)
    flip(first.folder / "index.json", where, 1)
    again = image_cache(images, tmp_path / "kept", settings=SMALL)
    assert (again.bad, again.digest) == (first.bad, first.digest)


def flip(path: Path, where: float, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 1 << bit
    path.write_bytes(content)


def test_the_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    images = members(tmp_path / "data")
    home = image_cache(images, tmp_path / "kept", settings=SMALL).folder
    for path in (tmp_path / "kept").iterdir():
        path.rename(tmp_path / path.name)
    (tmp_path / "victim").write_text("precious")
    home.with_suffix(".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(WriteError, match="cannot keep images in"):
        image_cache(images, tmp_path / "kept", settings=SMALL)
    assert (tmp_path / "victim").read_text() == "precious"


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    images = members(tmp_path / "data")

    def full(done: int, _: int) -> None:
        if done == 10:
            raise OSError(28, "No space left on device")

    told = (
        r"cannot keep images in .*kept: No space left on device \(2,160 bytes needed, [\d,]+ free"
    )
    with pytest.raises(WriteError, match=told):
        image_cache(images, tmp_path / "kept", settings=SMALL, progress=full)
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".lock"]
    image_cache(images, tmp_path / "kept", settings=SMALL)


def in_shards_of(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD", count * 3 * SMALL.size**2)


def test_how_long_shards_are_is_all_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = members(tmp_path / "data", bad=(0, 7))
    whole = image_cache(images, tmp_path / "whole", settings=SMALL)
    in_shards_of(3, monkeypatch)
    parts = image_cache(images, tmp_path / "parts", settings=SMALL)
    assert torch.equal(whole[torch.arange(18)], parts[torch.arange(18)])
    assert (whole.bad, whole.digest) == (parts.bad, parts.digest)
    for name in ("pixels", "sums", "bad"):
        assert (whole.folder / name).read_bytes() == (parts.folder / name).read_bytes()


def test_of_a_damaged_cache_the_shards_before_the_damage_are_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_shards_of(4, monkeypatch)
    images, told = members(tmp_path / "data", bad=(1,)), list[int]()
    first = image_cache(images, tmp_path / "kept", settings=SMALL)
    flip(first.folder / "pixels", 0.7, 0)  # image 14, of the fourth shard
    with pytest.raises(DataError, match="damaged and given up"):
        first[torch.arange(19)]
    again = image_cache(
        images, tmp_path / "kept", settings=SMALL, progress=lambda done, _: told.append(done)
    )
    assert told == [*range(13, 21)]
    assert (again.digest, again.bad) == (first.digest, first.bad)
    assert torch.equal(again[torch.arange(1, 19)], expected(images[2:], SMALL))


BUILDER = """
import sys, time
from pathlib import Path
from saccade.data.images import cache as module
from saccade.data.images.cache import CacheSettings, image_cache
from saccade.data.images.members import Member
module.SHARD = 4 * 3 * 6 * 6
images = [Member.of(Path(sys.argv[1]) / f"{n}.png") for n in range(20)]
def progress(done, of):
    print(done, flush=True)
    time.sleep(float(sys.argv[3]))
cache = image_cache(images, Path(sys.argv[2]), settings=CacheSettings(size=6), progress=progress)
print("ready", len(cache), flush=True)
"""


def builder(data: Path, kept: Path, pause: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(data), str(kept), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_builder_leaves_no_lock_and_costs_one_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, kept, told = tmp_path / "data", tmp_path / "kept", list[int]()
    images = members(data)
    with builder(data, kept, 0.2) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "10":
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    assert len(list(kept.glob("*.tmp"))) == 1
    in_shards_of(4, monkeypatch)
    began = time.monotonic()
    cache = image_cache(images, kept, settings=SMALL, progress=lambda done, _: told.append(done))
    assert time.monotonic() - began < 10
    assert told == [*range(9, 21)]
    monkeypatch.undo()
    undisturbed = image_cache(images, tmp_path / "other", settings=SMALL)
    assert cache.digest == undisturbed.digest
    assert torch.equal(cache[torch.arange(20)], expected(images, SMALL))
    assert not list(kept.glob("*.tmp"))


@pytest.mark.slow
def test_of_two_builders_one_waits(tmp_path: Path) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    members(data)
    with builder(data, kept, 0.2) as one, builder(data, kept, 0.2) as two:
        told = [process.communicate(timeout=60)[0].split("\n") for process in (one, two)]
    assert sorted(len(lines) for lines in told) == [2, 22]  # one was told of 20 images
    assert all(lines[-2] == "ready 20" for lines in told)


def test_settings_that_cannot_work_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="size=0 is below 1"):
        CacheSettings(size=0)
    with pytest.raises(ConfigError, match="threads=0 is below 1"):
        CacheSettings(threads=0)
    with pytest.raises(ConfigError, match="there are no images to cache"):
        image_cache([], tmp_path, settings=SMALL)
