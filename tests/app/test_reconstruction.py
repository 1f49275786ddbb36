"""A discrete VAE as a user meets it: from Python, from the command line, over HTTP."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.reconstruction.model import ReconstructionModel
from saccade.errors import ConfigError, DataError
from saccade.metrics.reconstruction import psnr, squared_error
from saccade.tasks.reconstruction.asset import dvae_asset, read_dvae_asset
from tests.app.serve.captioners import as_json
from tests.app.serve.serving import LocalServer
from tests.app.test_captioning import some_pictures
from tests.app.test_classification import run
from tests.app.test_cli import Capture

SIDE = 32


def load(folder: Path) -> ReconstructionModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, ReconstructionModel)
    return model


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name, content in some_pictures().items():
        (folder / name).write_bytes(content)
    return folder


def pixels_in(drawn: Path | bytes) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    with Image.open(io.BytesIO(drawn) if isinstance(drawn, bytes) else drawn) as image:
        return np.asarray(image)


@pytest.fixture(autouse=True)
def few_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.reconstruction.data.HELD_BACK", 5)


def test_python_gives_the_codes_the_image_and_what_was_lost(tokenizer_of_images: Path) -> None:
    model, given = load(tokenizer_of_images), list(some_pictures().values())
    together, alone = model.predict(given), [model.predict(image) for image in given]
    for one, other in zip(together, alone, strict=True):
        assert torch.equal(one.codes, other.codes)
        assert torch.equal(one.pixels, other.pixels)
        assert one.codes.shape == (4, 4)
        assert one.image.size == (SIDE, SIDE)
        error = squared_error(one.given[None], one.pixels[None]).item()
        assert one.psnr == pytest.approx(psnr(error))
    (made,) = model.decode(together[0].codes.flatten()[None])
    assert np.array_equal(np.asarray(made), np.asarray(together[0].image))
    assert "4 × 4 codes, psnr=" in repr(together[0])
    assert model.predict([]) == []


def test_what_are_no_codes_is_refused(tokenizer_of_images: Path) -> None:
    model = load(tokenizer_of_images)
    with pytest.raises(DataError, match=r"codes of shape \(1, 3\): an image has 16, row by row"):
        model.decode([[1, 2, 3]])
    with pytest.raises(DataError, match="code 16 is none: there are 0 to 15"):
        model.decode([[0] * 15 + [16]])
    with pytest.raises(DataError, match="code -1 is none"):
        model.decode([[0] * 15 + [-1]])
    with pytest.raises(DataError, match=r"codes of torch\.float32 are none"):
        model.decode([[0.5] * 16])
    with pytest.raises(DataError, match="codes are no table of numbers"):
        model.decode([["a"]])


def test_pairs_are_drawn_side_by_side(
    tokenizer_of_images: Path, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    model, one = load(tokenizer_of_images), images / "0.png"
    out = tmp_path / "pair.png"
    code, printed, said = run(capsys, "predict", tokenizer_of_images, one, "-o", out)
    found = model.predict(one)
    assert (code, printed.strip()) == (0, f"{found.psnr:.2f} dB")
    assert "wrote" in said
    drawn = pixels_in(out)
    larger = 256 // SIDE
    assert drawn.shape == (256 + 16, 2 * 256 + 16, 3)
    for left, pixels in ((8, found.given), (8 + 256 + 4, found.pixels)):
        part = drawn[8 : 8 + 256 : larger, left : left + 256 : larger]
        assert np.array_equal(part, pixels.permute(1, 2, 0).numpy())
    assert found.save(tmp_path / "same.png").read_bytes() == out.read_bytes()
    with pytest.raises(ConfigError, match="pdf"):
        found.save(tmp_path / "x.pdf")


def test_many_images_are_a_grid_and_bad_ones_are_passed_over(
    tokenizer_of_images: Path, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    (images / "bad.png").write_bytes(b"no image")
    out = tmp_path / "pairs.png"
    code, printed, said = run(capsys, "predict", tokenizer_of_images, images, "-o", out)
    assert code == 1
    assert "bad.png" in said
    assert len(printed.splitlines()) == len(some_pictures())
    height, width, _ = pixels_in(out).shape
    assert height > width / 2  # four pairs, below one another


def test_codes_are_printed_row_by_row(
    tokenizer_of_images: Path, images: Path, capsys: Capture
) -> None:
    found = load(tokenizer_of_images).predict(images / "0.png")
    _, printed, _ = run(capsys, "predict", tokenizer_of_images, images / "0.png", "--codes")
    assert [int(one) for one in printed.split()] == found.codes.flatten().tolist()
    _, printed, _ = run(capsys, "predict", tokenizer_of_images, images / "0.png", "--json")
    (row,) = json.loads(printed)
    assert row["codes"] == found.codes.tolist()
    assert row["psnr"] == pytest.approx(found.psnr, abs=1e-4)


def test_eval_tells_what_is_lost_and_how_codes_are_used(
    tokenizer_of_images: Path, images: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "pairs.png"
    code, printed, _ = run(capsys, "eval", tokenizer_of_images, "--json", "--draw", out)
    found = json.loads(printed)
    assert (code, found["images"], found["codes"], found["cells"]) == (0, 5, 16, 16)
    assert found["psnr"] == pytest.approx(psnr(found["mse"]), abs=1e-3)
    assert 1 <= found["perplexity"] <= 16 - found["dead"]
    assert pixels_in(out).shape[1] > 2 * SIDE
    code, printed, _ = run(capsys, "eval", tokenizer_of_images, "--data", images)
    assert code == 0
    assert "perplexity" in printed


def test_a_look_points_to_what_can_be_seen(tokenizer_of_images: Path, capsys: Capture) -> None:
    code, _, said = run(capsys, "look", tokenizer_of_images, "photo.jpg")
    assert code == 2
    assert f"saccade predict {tokenizer_of_images} photo.jpg -o pairs.png" in said
    assert len(said.splitlines()) == 1


def test_a_run_can_be_kept_inside_another(tokenizer_of_images: Path) -> None:
    model = load(tokenizer_of_images)
    again = read_dvae_asset(dvae_asset(model.tool.model))
    given = model.predict(next(iter(some_pictures().values())))
    assert torch.equal(again.codes(given.given[None])[0], given.codes.flatten())


@pytest.fixture(scope="module")
def server(tokenizer_of_images: Path) -> Iterator[LocalServer]:
    with LocalServer([tokenizer_of_images]) as running:
        yield running


def test_a_server_answers_with_codes_and_the_image_again(server: LocalServer) -> None:
    model = load(server.runs["dvae"].path)
    some = list(some_pictures().values())[:2]
    answer = as_json(server, *some, run="dvae")
    assert answer.status_code == 200, answer.text
    for raw, found in zip(some, answer.json()["predictions"], strict=True):
        expected = model.predict(raw)
        assert found["codes"] == expected.codes.tolist()
        png = base64.b64decode(found["image"].removeprefix("data:image/png;base64,"))
        assert np.array_equal(pixels_in(png), np.asarray(expected.image))


def test_a_server_refuses_what_a_discrete_vae_cannot_do(server: LocalServer) -> None:
    raw = next(iter(some_pictures().values()))
    told = as_json(server, raw, run="dvae", beam=3).json()["error"]
    assert told["message"] == "dvae tells images by codes and writes nothing: leave beam out"
    coded = base64.b64encode(raw).decode()
    looked = server.post("/v1/look", {"run": "dvae", "image": coded})
    assert looked.status_code == 422
    assert "has no attention to look at" in looked.json()["error"]["message"]
