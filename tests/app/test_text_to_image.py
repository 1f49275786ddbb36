"""A text-to-image model as a user meets it: from Python, from the command line, served."""

import base64
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import saccade
from saccade.app.kinds.text_to_image.kind import print_judged
from saccade.app.kinds.text_to_image.model import ImagePrediction, TextToImageModel
from saccade.app.look.document import LookDocument
from saccade.app.look.settings import LookSettings
from saccade.app.look.text_to_image import drawn_document
from saccade.errors import ConfigError, DataError, RunError
from saccade.tasks.reconstruction.asset import ASSET, dvae_asset
from saccade.tasks.text_to_image.data import read_texts
from saccade.tasks.text_to_image.drawer import Drawn
from saccade.tasks.text_to_image.teacher_forced import cells_seen
from tests.app.drawer_runs import drawer_run
from tests.app.look.reading import values
from tests.app.serve.serving import LocalServer
from tests.app.test_classification import run
from tests.app.test_cli import Capture, Patch
from tests.marks import one_fast
from tests.tasks.text_to_image.drawers import PROMPT, TINY_DALLE, TINY_DVAE

OTHER = "a blue square"
SIDE = TINY_DVAE.image


@pytest.fixture(scope="module")
def drawer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawer_run(tmp_path_factory.mktemp("runs") / "dalle")


@pytest.fixture(scope="module")
def model(drawer: Path) -> TextToImageModel:
    found = saccade.load(drawer, device="cpu")
    assert isinstance(found, TextToImageModel)
    return found


def picture(path: Path) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(path).convert("RGB"))


def test_a_prompt_becomes_images_with_codes_and_scores(model: TextToImageModel) -> None:
    found = model.predict(PROMPT, count=3, seed=1)
    assert [one.prompt for one in found] == [PROMPT] * 3
    assert len({tuple(one.codes) for one in found}) == 3
    for one in found:
        assert one.pixels.dtype == torch.uint8
        assert one.image.size == (SIDE, SIDE)
        assert len(one.codes) == TINY_DALLE.cells
        assert one.score == pytest.approx(one.log_probability / TINY_DALLE.cells)
        assert Image.open(io.BytesIO(one._repr_png_())).size == (SIDE, SIDE)  # pyright: ignore[reportPrivateUsage]
    (whole,) = model.tool.images([Drawn(found[0].codes, 0.0)])
    assert torch.equal(whole, found[0].pixels)
    assert repr(found[0]).startswith(f"ImagePrediction('{PROMPT}', score=-")
    assert "dalle" in repr(model)


def test_what_is_drawn_depends_on_nothing_beside_it(model: TextToImageModel) -> None:
    alone = [model.predict(one, seed=5)[0].codes for one in (PROMPT, OTHER)]
    together = model.predict([PROMPT, OTHER], count=2, seed=5)
    assert [together[0].codes, together[2].codes] == alone
    assert model.predict(PROMPT, seed=6)[0].codes != alone[0]
    assert model.predict(PROMPT, seed=5, guidance=3.0)[0].codes != alone[0]


def test_the_upper_part_of_an_image_is_kept(model: TextToImageModel) -> None:
    given = model.predict(PROMPT, seed=2)[0].image
    (kept,) = model.tool.dvae.codes(model.tool.prepare(given)[None])
    found = model.predict(OTHER, complete=given, rows=3, count=2)
    for one in found:
        assert one.codes[:12] == kept[:12].tolist()
        assert one.begun == 12
        assert one.score == pytest.approx(one.log_probability / 4)
    assert model.predict(OTHER, complete=given)[0].begun == 8
    with pytest.raises(ConfigError, match="rows=4 must be from 1 to 3: there are 4 in all"):
        model.predict(OTHER, complete=given, rows=4)
    with pytest.raises(ConfigError, match="rows=2 are those of an image to complete; give that"):
        model.predict(OTHER, rows=2)


class RedFirst:
    """Stands in for a run that tells how well images fit."""

    name = "red-first"

    @property
    def tool(self) -> "RedFirst":
        return self

    def similarity(self, images: Tensor, text: str) -> Tensor:
        assert text == PROMPT
        return images[:, 0].float().mean(dim=(1, 2))


def test_the_best_come_first_where_somebody_says_how_well_they_fit(
    model: TextToImageModel,
) -> None:
    plain = model.predict(PROMPT, count=5)
    red = sorted((float(one.pixels[0].float().mean()) for one in plain), reverse=True)
    found = model.predict(PROMPT, count=5, rerank=RedFirst(), best=2)
    assert [one.score for one in found] == pytest.approx(red[:2])
    assert {tuple(one.codes) for one in found} <= {tuple(one.codes) for one in plain}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rerank": RedFirst()}, "rerank puts the best of several images first; draw more"),
        ({"count": 2, "best": 1}, "best=1: nobody says which are; name a run with --rerank"),
        ({"count": 2, "best": 3, "rerank": RedFirst()}, "best=3 must be from 1 to count=2"),
        ({"count": 2, "rerank": model}, "dalle does not say how well an image fits a text"),
    ]
    for options, message in wrong:
        with pytest.raises(ConfigError, match=message):
            model.predict(PROMPT, **options)


def test_what_cannot_be_drawn_is_refused(model: TextToImageModel) -> None:
    with pytest.raises(DataError, match="'' has no word to draw; write one"):
        model.predict("")
    with pytest.raises(DataError, match="has 40 tokens, but the model reads 21; shorten it"):
        model.predict("red " * 40)
    with pytest.raises(ConfigError, match="count=0 must be at least 1"):
        model.predict(PROMPT, count=0)
    with pytest.raises(ConfigError, match="beam does not say how to draw; there are: temperature"):
        model.predict(PROMPT, beam=3)
    with pytest.raises(
        ConfigError, match=r"x\.jpg: an image is written as \.png; name such a file"
    ):
        model.predict(PROMPT)[0].save("x.jpg")


def test_one_prompt_gives_a_sheet_under_its_name(
    drawer: Path, model: TextToImageModel, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "grid.png"
    code, out, _ = run(capsys, "predict", drawer, PROMPT, "--count", "5", "-o", path)
    assert (code, out) == (0, f"{path}\n")
    whole = picture(path)
    first = model.predict(PROMPT)[0].image.resize((192, 192), Image.Resampling.BICUBIC)
    gap = 8
    assert whole.shape[1] == gap + 3 * (192 + gap)
    head = whole.shape[0] - 2 * (192 + gap)
    assert np.array_equal(whole[head : head + 192, gap : gap + 192], np.asarray(first))
    assert (whole[:head] < 128).any()  # the prompt
    assert (whole[head + 200 :, 2 * (192 + gap) + gap :] == 255).all()  # there is no sixth


def test_several_prompts_give_numbered_sheets_and_a_folder_gets_the_very_pixels(
    drawer: Path, model: TextToImageModel, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    lines = tmp_path / "prompts.txt"
    lines.write_text(f"{PROMPT}\n\n{OTHER}\n")
    code, out, _ = run(capsys, "predict", drawer, lines, "-o", tmp_path / "x.png")
    assert (code, out) == (0, f"{tmp_path}/x-1.png\n\n{tmp_path}/x-3.png\n")
    typed = io.TextIOWrapper(io.BytesIO(lines.read_bytes()))
    monkeypatch.setattr("sys.stdin", typed)
    folder = tmp_path / "drawn"
    code, out, _ = run(capsys, "predict", drawer, "-", "--count", "2", "-o", folder, "--json")
    assert code == 0
    told = json.loads(out)
    expected = [model.predict(PROMPT, count=2), [], model.predict(OTHER, count=2)]
    assert [one["prompt"] for one in told] == [PROMPT, "", OTHER]
    for row, images in zip(told, expected, strict=True):
        assert [one["codes"] for one in row["images"]] == [one.codes for one in images]
        for one, image in zip(row["images"], images, strict=True):
            assert one["log_probability"] == pytest.approx(image.log_probability, rel=1e-4)
            assert np.array_equal(picture(Path(one["file"])), np.asarray(image.image))
    assert sorted(path.name for path in folder.iterdir()) == [
        "1-1.png", "1-2.png", "3-1.png", "3-2.png"
    ]  # fmt: skip


def test_without_a_name_the_first_free_one_is_taken_and_told(
    drawer: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("images.png", "images-2.png"):
        code, out, _ = run(capsys, "predict", drawer, PROMPT)
        assert (code, out) == (0, f"{name}\n")
        assert (tmp_path / name).is_file()


def test_completing_and_reranking_are_commands_too(
    drawer: Path, model: TextToImageModel, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    given = model.predict(OTHER)[0].save(tmp_path / "given.png")
    options = ["--complete", given, "--rows", "3", "-o", tmp_path / "x.png", "--json"]
    code, out, _ = run(capsys, "predict", drawer, PROMPT, *options)
    assert code == 0
    expected = model.predict(PROMPT, complete=given, rows=3)[0].codes
    assert json.loads(out)[0]["images"][0]["codes"] == expected

    def load(path: str, device: str) -> Any:
        return RedFirst() if path == "red" else saccade.load(path, device=device)

    monkeypatch.setattr("saccade.app.kinds.text_to_image.kind.load", load)
    options = ["--count", "4", "--rerank", "red", "--best", "2", "--json", "-o", tmp_path / "y.png"]
    _, out, _ = run(capsys, "predict", drawer, PROMPT, *options)
    told = [one["similarity"] for one in json.loads(out)[0]["images"]]
    best = model.predict(PROMPT, count=4, rerank=RedFirst(), best=2)
    assert told == pytest.approx([one.similarity for one in best])


def test_eval_tells_losses_and_keeps_them(
    drawer: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 9)
    copy = shutil.copytree(drawer, tmp_path / "dalle")
    code, out, _ = run(capsys, "eval", copy, "--json", "--split", "valid", "--keep")
    found = json.loads(out)
    assert (code, found["split"], found["images"]) == (0, "valid", 9)
    assert found["per_code"]["perplexity"] > 1
    assert "per code: without_text" in run(capsys, "eval", copy)[1]


def test_eval_reads_its_split_once_and_refuses_before_it_scores(
    drawer: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 9)
    reads: list[str | None] = []

    def read(settings: Any, split: str | None, progress: Any) -> Any:
        reads.append(split)
        return read_texts(settings, split, progress)

    monkeypatch.setattr("saccade.app.kinds.text_to_image.kind.read_texts", read)
    code, out, _ = run(capsys, "eval", drawer, "--judged", "3", "--json")
    assert (code, reads, json.loads(out)["judged"]["prompts"]) == (0, ["test"], 3)

    def never(*given: Any, **options: Any) -> Any:
        raise AssertionError("nothing is scored")

    monkeypatch.setattr("saccade.app.kinds.text_to_image.kind.evaluate_drawer", never)
    code, _, error = run(capsys, "eval", drawer, "--judged", "10")
    assert (code, error) == (2, "saccade: judged=10 must be from 1 to 9 scenes\n")
    code, _, error = run(capsys, "eval", drawer, "--judged", "2", "--rerank", drawer)
    assert (code, "does not say how well an image fits a text" in error) == (2, True)


def test_a_share_that_nothing_is_known_of_is_a_dash(capsys: Capture) -> None:
    shares = {"all": 0.5, "objects": 1.0, "relations": None}
    print_judged({"prompts": 2, "drawn": shares})
    assert capsys.readouterr().out.splitlines()[-1].split() == ["drawn", "0.500", "1.000", "–"]


@pytest.mark.parametrize("name", ["missing", "cut", "other", "nan"])
def test_a_discrete_vae_that_is_not_the_runs_own_is_refused(
    name: str, drawer: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(drawer, tmp_path / "dalle")
    path, raw = copy / ASSET, (copy / ASSET).read_bytes()
    (copy / "manifest.json").unlink()  # which would tell of any change
    dvae = saccade.load(drawer, device="cpu").tool.dvae
    other = replace(TINY_DVAE, codes=9).build()
    messages = {
        "missing": r"dvae.safetensors is not the discrete VAE of the run \(No such file",
        "cut": r"dvae.safetensors is not the discrete VAE of the run \(no safetensors|\(not whole",
        "other": "has codes=9, and the model codes=12: it belongs to another run; copy the run",
        "nan": "holds values that are not finite; copy the run again as a whole",
    }
    if name == "missing":
        path.unlink()
    elif name == "nan":
        next(dvae.parameters()).data.fill_(torch.nan)
        path.write_bytes(dvae_asset(dvae))
    else:
        path.write_bytes(raw[: len(raw) // 2] if name == "cut" else dvae_asset(other))
    with pytest.raises(RunError, match=messages[name]) as refused:
        saccade.load(copy, device="cpu")
    assert "\n" not in str(refused.value)


def document_of(model: TextToImageModel, one: ImagePrediction, **how: Any) -> LookDocument:
    return drawn_document(model, one.subject, LookSettings(**how))


def test_the_look_document_has_all_that_cells_looked_at(model: TextToImageModel) -> None:
    (one,) = model.predict(PROMPT, seed=4)
    document = document_of(model, one)
    (look,) = document.looks
    assert (document.kind, document.subject, look.text) == ("text-to-image", PROMPT, PROMPT)
    seen, drawn = look.axes["seen"], look.drawn
    assert seen.grid is not None
    assert drawn is not None
    special = seen.grid.special
    assert "".join(seen.tokens[1 : special - 2]) == PROMPT
    assert seen.tokens[0] == "<start>"
    assert seen.tokens[special - 2 : special] == ["<end>", "…"]
    words = ["".join(seen.tokens[a:b]).strip() for a, b in seen.words]
    assert words == PROMPT.split()
    assert drawn.codes == one.codes
    log_p = [value for value in look.axes["cells"].log_p or [] if value is not None]
    assert sum(log_p) == pytest.approx(one.log_probability, abs=0.01)
    masks = cells_seen(model.tool.model)
    for site in look.sites:
        weights = values(document.blobs, site.arrays["weights"])
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=2e-3)
        hidden = ~masks[drawn.sees[site.name]].numpy()
        assert (weights[:, :, special:][:, hidden] == 0).all()
        kept = values(document.blobs, drawn.masks[drawn.sees[site.name]])
        assert np.array_equal(kept, ~hidden)
    assert document.notes == []


def test_a_small_budget_keeps_the_mean_of_heads_and_says_so(
    model: TextToImageModel, monkeypatch: Patch
) -> None:
    (one,) = model.predict(PROMPT)
    exact = document_of(model, one)
    monkeypatch.setattr("saccade.app.look.text_to_image.TEXT_BYTES", 1e9)
    coarse = document_of(model, one)
    assert any("mean" in note for note in coarse.notes)
    for fine, rough in zip(exact.looks[0].sites, coarse.looks[0].sites, strict=True):
        every = values(exact.blobs, fine.arrays["weights"])
        mean = values(coarse.blobs, rough.arrays["weights"])
        np.testing.assert_allclose(mean[0], every.mean(axis=0), atol=0.005)


@pytest.mark.parametrize("ending", one_fast(["html", "png", "svg", "json"]))
def test_a_look_is_drawn_of_the_image_that_predict_draws(
    ending: str, drawer: Path, model: TextToImageModel, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / f"look.{ending}"
    options = ["--seed", "7", "--temperature", "0.8"]
    code, out, error = run(capsys, "look", drawer, PROMPT, *options, "-o", path)
    assert (code, f"wrote {path}" in error) == (0, True)
    if ending != "html":
        rows = [line.split("←")[0].strip() for line in out.splitlines()]
        assert rows == ["<start>", *PROMPT.split(), "<end>", "…"]
    (one,) = model.predict(PROMPT, seed=7, temperature=0.8)
    if ending == "html":
        assert f'"codes":{json.dumps(one.codes, separators=(",", ":"))}' in path.read_text()
    elif ending == "json":
        told = json.loads(path.read_text())
        assert (told["caption"], told["codes"]) == (PROMPT, one.codes)
        shares = np.array(told["to_words"]).sum(axis=1) + np.array(told["to_cells"]).sum(axis=1)
        np.testing.assert_allclose(shares, 1.0, atol=1e-4)
    else:
        assert path.stat().st_size > 1000


@pytest.mark.slow
def test_a_look_has_layers_and_heads(model: TextToImageModel) -> None:
    (one,) = model.predict(PROMPT)
    mean, layer = one.look(), one.look(layer=1)
    head = one.look(layer=1, head=1, units="pieces")
    assert not torch.allclose(mean.to_cells, layer.to_cells)
    assert not torch.allclose(layer.to_cells, head.to_cells)
    assert layer.film.title == (
        "dalle: which cells looked at each word, decoder.1.self (sees its column), mean over heads"
    )
    torch.testing.assert_close(mean.film.maps.sum(dim=(1, 2)), torch.ones(len(mean.words)))
    assert "<iframe" in mean._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert mean._repr_png_().startswith(b"\x89PNG")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ConfigError, match="head=1 is of a layer; name that too"):
        one.look(head=1)
    with pytest.raises(ConfigError, match=r"decoder.1.self has no head 2; it has 2"):
        one.look(layer=1, head=2)


def test_it_is_served(drawer: Path, model: TextToImageModel) -> None:
    with LocalServer([drawer]) as server:
        answer = server.predict(PROMPT, count=2, seed=3).json()["predictions"]
        expected = model.predict(PROMPT, count=2, seed=3)
        assert [one["codes"] for one in answer] == [one.codes for one in expected]
        (guided,) = server.predict(PROMPT, guidance=3.0, seed=3).json()["predictions"]
        (closer,) = model.predict(PROMPT, guidance=3.0, seed=3)
        assert guided["codes"] == closer.codes != expected[0].codes
        image = Image.open(io.BytesIO(base64.b64decode(answer[1]["image"])))
        assert np.array_equal(np.asarray(image), np.asarray(expected[1].image))
        look = server.post("/v1/look", {"text": PROMPT, "seed": 3}).json()
        assert look["looks"][0]["drawn"]["codes"] == expected[0].codes
        wrong: list[tuple[str, Any, str]] = [
            ("text", "", "'' has no word to draw; write one"),
            ("text", "red " * 40, "the prompt has 40 tokens, but the model reads 21; shorten it"),
            ("beam", 3, "dalle draws images, each whole and at random: leave beam out"),
            ("sample", False, "dalle draws images, each whole and at random: leave sample out"),
            ("stream", True, "dalle draws images, each whole and at random: leave stream out"),
            ("guidance", -1.0, "guidance=-1.0 must be a number from 0 to 100; 1 leaves it out"),
            ("image", "AAAA", "dalle takes a text, and no image"),
        ]
        for field, value, message in wrong:
            refused = server.post("/v1/predict", {"text": PROMPT, field: value})
            assert refused.status_code == 422
            assert refused.json()["error"]["message"] == message
            assert refused.json()["error"]["field"] == field
        refused = server.post("/v1/look", {"text": PROMPT, "sample": False})
        assert "images are drawn at random: leave sample out" in refused.text
