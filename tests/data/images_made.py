"""Small data sets of captioned images, for the tests that read them."""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

Files = Mapping[str, bytes]


def picture(seed: int, *, side: int = 8, form: str = "PNG") -> bytes:
    """Noise that its seed tells."""
    noise = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    sink = io.BytesIO()
    Image.fromarray(noise).save(sink, form)
    return sink.getvalue()


def rows(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def in_folder(root: Path, files: Files) -> Path:
    for name, raw in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    return root


def in_tar(path: Path, files: Files) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, raw in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return path


def in_zip(path: Path, files: Files) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, raw) in enumerate(files.items()):
            how = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
            archive.writestr(name, raw, compress_type=how)
    return path


CAPTIONS = {"a.png": ["A dog .", "One dog ."], "b.png": ["A cat ."], "c.png": ["A cow ."]}
PICTURES = {name: picture(seed) for seed, name in enumerate(CAPTIONS)}


def metadata(*names: str) -> bytes:
    return rows(*({"file_name": name, "captions": CAPTIONS[name]} for name in names))


def table(*names: str, first: str) -> bytes:
    mark = next(mark for mark in "\t;|," if mark in first)
    said = [f"{name}{mark}{text}" for name in names for text in CAPTIONS[name]]
    return "\n".join([first, *said, ""]).encode()


def coco(*names: str) -> bytes:
    images = [{"id": 7 * n, "file_name": name} for n, name in enumerate(names)]
    said = [(7 * n, text) for n, name in enumerate(names) for text in CAPTIONS[name]]
    annotations = [{"id": n, "image_id": i, "caption": text} for n, (i, text) in enumerate(said)]
    return json.dumps({"images": images, "annotations": annotations}).encode()


def karpathy(splits: Mapping[str, str]) -> bytes:
    images = [
        {
            "filename": name,
            "filepath": "val2014",
            "split": split,
            "imgid": number,
            "sentences": [{"raw": text, "tokens": text.split()} for text in CAPTIONS[name]],
        }
        for number, (name, split) in enumerate(splits.items())
    ]
    return json.dumps({"images": images, "dataset": "coco"}).encode()


def below(folder: str, files: Files) -> dict[str, bytes]:
    return {f"{folder}/{name}": raw for name, raw in files.items()}
