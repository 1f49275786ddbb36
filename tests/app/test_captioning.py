"""A captioner as a user meets it: from Python, from the command line, with images of any kind."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.app.kinds.captioning.kind import CaptioningModel
from saccade.data import shapes
from saccade.data.tokens.words import words
from saccade.errors import ConfigError, DataError
from saccade.metrics.captioning import caption_scores
from saccade.tasks.captioning.evaluate import content_scores
from tests.app.test_cli import Capture, Patch, run
from tests.data.images.test_decode import png_of_size, stored, transparent
from tests.data.images_made import PICTURES, in_folder, in_tar, in_zip, metadata, picture, rows


def load_captioner(folder: Path) -> CaptioningModel:
    model = saccade.load(folder, device="cpu")
    assert isinstance(model, CaptioningModel)
    return model


def some_pictures(count: int = 4) -> dict[str, bytes]:
    drawn = (shapes.render(shapes.scene("test", index), 32) for index in range(count))
    return {f"{number}.png": stored(Image.fromarray(p), "PNG") for number, p in enumerate(drawn)}


def test_many_images_give_what_each_gives_alone_in_their_order(captioner: Path) -> None:
    model, images, told = load_captioner(captioner), list(some_pictures().values()), []
    together = model.predict(images, beam=2, progress=lambda *done: told.append(done))
    alone = [model.predict(image, beam=2) for image in images]
    assert [one.text for one in together] == [one.text for one in alone]
    for one, other in zip(together, alone):
        assert one.score == pytest.approx(other.score, abs=1e-4)
    assert told == [(4, 4)]
    assert [one.name for one in together] == [f"image {number}" for number in range(4)]
    assert model.predict([]) == []


def test_an_n_best_list_is_sorted_and_each_entry_has_its_own_attention(captioner: Path) -> None:
    (image,) = some_pictures(1).values()
    best = load_captioner(captioner).predict(image, beam=3, n_best=3)
    scores = [best.score, *(other.score for other in best.others)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert str(best) == best.text
    for one in (best, *best.others):
        (glance,) = one.attention.values()
        described = one.written
        assert glance.entropy.shape[2] == len(described.tokens) + described.finished
        assert described.text == one.text


@pytest.mark.slow
def test_sampled_captions_are_looked_at_as_they_are(captioner: Path) -> None:
    model, images = load_captioner(captioner), list(some_pictures().values())
    for one in model.predict(images, beam=1, sample=True, seed=5):
        (glance,) = one.attention.values()
        assert glance.entropy.shape[2] == len(one.written.tokens) + one.written.finished
        assert one.written.text == one.text


def test_a_look_has_a_map_for_each_word_over_the_image_as_it_was_given(captioner: Path) -> None:
    model, scene = load_captioner(captioner), shapes.scene("test", 0)
    for image in (Image.fromarray(shapes.render(scene, 300)), shapes.render(scene, 300)):
        look = model.look(image)
        assert look.rows == words(look.caption)
        assert look.maps.shape[0] == len(look.rows)
        assert look.maps.sum(dim=(1, 2)).tolist() == pytest.approx([1.0] * len(look.rows))
        assert look.image.shape == (3, 300, 300)
        assert look.document().kind == "caption"


def test_the_page_of_a_prediction_is_of_the_very_pixels_that_were_described(
    captioner: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (900, 1200, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.jpg")  # decoded smaller for the model
    model = load_captioner(captioner)
    said, seen, caption = model.predict(tmp_path / "large.jpg"), [], model.tool.caption

    def noted(pictures: torch.Tensor, *rest: Any, **more: Any) -> Any:
        seen.append(pictures[0])
        return caption(pictures, *rest, **more)

    monkeypatch.setattr(model.tool, "caption", noted)
    look = said.look()
    assert look.document().looks[0].text == said.text
    assert torch.equal(seen[-1], said.pixels)
    assert look.image.shape[1] > said.pixels.shape[1]


def test_a_bad_image_among_many_is_named(captioner: Path, tmp_path: Path) -> None:
    model, (good,) = load_captioner(captioner), some_pictures(1).values()
    with pytest.raises(DataError, match=r"^image 1: no image: it does not begin like any of JPEG"):
        model.predict([good, b"text"])
    with pytest.raises(DataError, match=r"^image 1: no image: float32 values of shape"):
        model.predict([good, np.zeros((2, 2), np.float32)])
    with pytest.raises(DataError, match=r"none\.png: unreadable image: .*does not exist"):
        model.predict(tmp_path / "none.png")


def test_another_engine_is_refused_in_one_line(captioner: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"^engine='ctranslate2' decodes text alone, and this run is of captioning; leave the",
    ):
        saccade.load(captioner, engine="ctranslate2")


def test_predict_prints_one_caption_alone_and_several_with_their_names(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    data = in_folder(tmp_path / "in", some_pictures())
    predictions = load_captioner(captioner).predict([data / f"{n}.png" for n in range(4)])
    expected = [f"{data}/{n}.png\t{one.text}" for n, one in enumerate(predictions)]
    assert run(["predict", str(captioner), str(data / "0.png")], monkeypatch) == 0
    assert capsys.readouterr().out == f"{predictions[0].text}\n"
    for given in ([str(data)], [str(data / f"{n}.png") for n in range(4)]):
        assert run(["predict", str(captioner), *given], monkeypatch) == 0
        assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("pack", [in_tar, in_zip])
def test_predict_reads_archives_and_folders_in_folders(
    pack: Callable[[Path, dict[str, bytes]], Path],
    captioner: Path,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    files = {f"top/{n % 2}/{name}": raw for n, (name, raw) in enumerate(some_pictures().items())}
    files = {**files, "top/readme.txt": b"no image", "top/0/.hidden.png": b""}
    archive = pack(tmp_path / f"x{'.zip' if pack is in_zip else '.tar'}", files)
    folder = in_folder(tmp_path / "folder", files)
    (folder / "top" / "circle").symlink_to(folder)
    tables = []
    for given in (archive, folder):
        assert run(["predict", str(captioner), str(given), "--json"], monkeypatch) == 0
        tables.append(json.loads(capsys.readouterr().out))
    for packed, lying in zip(*tables, strict=True):
        assert packed["file"].removeprefix(str(archive)) == lying["file"].removeprefix(str(folder))
        assert (packed["text"], packed["score"]) == (lying["text"], lying["score"])
    names = [row["file"].removeprefix(f"{folder}/top/") for row in tables[1]]
    assert names == ["0/0.png", "0/2.png", "1/1.png", "1/3.png"]


def odd_images() -> dict[str, bytes]:
    """Every image of the list that can be read after all."""
    grey = Image.fromarray(np.linspace(0, 65_535, 64).astype(np.uint16).reshape(8, 8))
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = [Image.new("RGB", (5, 4), colour) for colour in ("red", "green")]
    plain = Image.open(io.BytesIO(picture(0)))
    return {
        "dot.png": stored(Image.new("RGB", (1, 1)), "PNG"),
        "line.png": stored(Image.new("RGB", (1, 10_000)), "PNG"),
        "cmyk.jpg": stored(plain.convert("CMYK"), "JPEG"),
        "grey16.png": stored(grey, "PNG"),
        "palette.png": stored(transparent("P"), "PNG", transparency=1),
        "la.png": stored(transparent("LA"), "PNG"),
        "animated.gif": stored(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "turned.jpg": stored(plain, "JPEG", exif=exif),
        "lying.jpg": picture(3),
        "profile.png": stored(plain, "PNG", icc_profile=b"x" * 200),
    }


def bad_images() -> dict[str, tuple[bytes, str]]:
    """Every image of the list that cannot, and what is said of it."""
    jpeg = picture(1, side=64, form="JPEG")
    return {
        "empty.png": (b"", "empty image: the file has 0 bytes"),
        "text.png": (b"not a picture\n", "no image: it does not begin like any of JPEG"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "damaged image: a JPEG file, but "),
        "header.jpg": (jpeg[:20], "damaged image: a JPEG file, but "),
        "huge.png": (png_of_size(12_000, 12_000), "too large: 12000×12000 is over 50,000,000"),
    }


def test_odd_images_are_described_and_broken_ones_told_while_the_rest_goes_on(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    odd, bad = odd_images(), bad_images()
    files = {**odd, **{name: raw for name, (raw, _) in bad.items()}}
    data = in_folder(tmp_path / "in", files)
    (data / "lost.png").symlink_to("nowhere.png")
    given = ["predict", str(captioner), str(data), str(tmp_path / "missing.png"), "--beam", "1"]
    assert run(given, monkeypatch) == 1
    captured = capsys.readouterr()
    named = [line.split("\t")[0] for line in captured.out.splitlines()]
    assert named == [str(data / name) for name in sorted(odd)]
    *told, last = captured.err.splitlines()
    assert last == f"saccade: 7 of {len(odd) + 7} images could not be read"
    assert "Traceback" not in captured.err
    reasons = {name: reason for name, (_, reason) in bad.items()}
    reasons |= {"lost.png": "missing image: a link that leads nowhere"}
    for name, reason in reasons.items():
        (line,) = (line for line in told if line.startswith(f"{data / name}: "))
        assert reason in line
    assert f"{tmp_path / 'missing.png'} does not exist; check the path" in told[-1]
    assert len(told) == 7


def test_what_failed_is_in_the_json_too(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    data = in_folder(tmp_path, {**some_pictures(1), "bad.png": b""})
    arguments = ["predict", str(captioner), str(data), "--json", "--n-best", "2"]
    assert run(arguments, monkeypatch) == 1
    good, bad = json.loads(capsys.readouterr().out)
    assert good["file"] == str(data / "0.png")
    assert good["others"][0]["score"] <= good["score"]
    assert bad["file"] == str(data / "bad.png")
    assert "empty image" in bad["error"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name the images: files, folders, .tar or .zip archives"),
        (["-", "a.png"], "- is standard input alone"),
    ],
)
def test_images_must_be_named(
    given: list[str], message: str, captioner: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    assert run(["predict", str(captioner), *given], monkeypatch) == 2
    assert message in capsys.readouterr().err


def test_places_without_images_are_told(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    (tmp_path / "none").mkdir()
    packed = in_folder(tmp_path, {"x.tar.gz": b"", "0.png": some_pictures(1)["0.png"]})
    given = [str(tmp_path / "none"), str(packed / "x.tar.gz"), str(packed / "0.png")]
    assert run(["predict", str(captioner), *given], monkeypatch) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{packed / '0.png'}\t")
    first, second, last = captured.err.splitlines()
    assert first.startswith(f"{tmp_path / 'none'} holds no images: no name in it ends in .jpg")
    assert "is compressed as a whole" in second
    assert last == "saccade: 2 of 3 images could not be read"


@pytest.mark.slow
def test_eval_scores_what_the_captioner_says_itself(
    captioner: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 12)
    assert run(["eval", str(captioner), "--beam", "2", "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    scenes = [shapes.scene("test", index, shapes.ShapesSettings(size=32)) for index in range(12)]
    images = [shapes.render(scene, 32) for scene in scenes]
    captions = [one.text for one in load_captioner(captioner).predict(images, beam=2)]
    expected = caption_scores(captions, [list(shapes.captions(scene)) for scene in scenes])
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["perplexity"] == pytest.approx(float(torch.tensor(found["loss"]).exp()))
    assert (found["images"], found["beam"], found["split"]) == (12, 2, "test")
    assert found["different_captions"] == len(set(captions))
    assert {"exact", "complete", "exact_by_objects", "pointing", "pointing_given"} <= set(found)
    assert found["pointing_given"]["count"] > 12


def test_eval_of_a_users_pictures_has_the_scores_that_need_no_truth(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    data = in_folder(tmp_path / "data", {**PICTURES, "test.jsonl": metadata("a.png", "b.png")})
    arguments = ["eval", str(captioner), "--data", str(data), "--beam", "1"]
    assert run([*arguments, "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["references"]) == (2, 3)
    assert not {"exact", "pointing", "reasons"} & set(found)
    assert run(arguments, monkeypatch) == 0
    assert capsys.readouterr().out.startswith("test: 2 images with 3 references, beam 1, ")
    assert run([*arguments, "--split", "winter"], monkeypatch) == 2
    assert "has no 'winter' split" in capsys.readouterr().err


@pytest.mark.slow
def test_eval_asks_a_captioner_about_groups_that_it_was_not_trained_with(
    captioner: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    shown = [("a.png", "boy"), ("b.png", "woman")]
    said = ({"file_name": file, "text": f"A {group} .", "group": group} for file, group in shown)
    data = in_folder(tmp_path / "data", {**PICTURES, "test.jsonl": rows(*said)})
    arguments = ["eval", str(captioner), "--data", str(data), "--beam", "1", "--json"]
    assert run(arguments, monkeypatch) == 0
    assert "reasons" not in json.loads(capsys.readouterr().out)
    assert run([*arguments, "--groups", "man,boy", "woman"], monkeypatch) == 0
    outcomes = json.loads(capsys.readouterr().out)["reasons"]["outcomes"]
    assert {name: one["images"] for name, one in outcomes.items()} == {"man": 1, "woman": 1}
    assert run([*arguments, "--groups", "man"], monkeypatch) == 2
    assert "must be two lists of words or more" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("split", ["compositional", "many", "balanced-test"])
def test_eval_takes_any_split_of_shapes(
    split: str, captioner: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 5)
    assert run(["eval", str(captioner), "--split", split, "--beam", "1"], monkeypatch) == 0
    told = capsys.readouterr().out
    assert "BLEU-4" in told
    assert "given captions" in told
    assert ("how the groups fare" in told) == (split == "balanced-test")
    assert ("balanced-test: against the bias" in told) == (split == "balanced-test")
    assert max(map(len, told.splitlines())) <= 110
    assert run(["eval", str(captioner), "--split", "winter"], monkeypatch) == 2
    assert "winter" in capsys.readouterr().err


def test_true_captions_are_exact_and_those_of_other_scenes_are_not() -> None:
    scenes = [shapes.scene("test", index) for index in range(30)]
    said = [shapes.captions(scene)[0] for scene in scenes]
    right = content_scores(said, scenes)
    assert right["exact"] == 1.0
    named = [shapes.parse(caption) for caption in said]
    whole = [one is not None and shapes.complete(one, s) for one, s in zip(named, scenes)]
    assert right["complete"] == sum(whole) / 30
    counts = [len(scene.objects) for scene in scenes]
    assert set(right["exact_by_objects"]) == {str(count) for count in counts}
    total = sum(right["complete_by_objects"][str(count)] for count in counts)
    assert total == pytest.approx(sum(whole))
    assert content_scores(said[1:] + said[:1], scenes)["exact"] < 0.2
    assert content_scores(["a a a"] * 30, scenes)["exact"] == 0
