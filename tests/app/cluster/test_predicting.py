"""Predicting with workers of Ray on this machine, for real: the same answers in the same order."""

import gzip
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

import saccade
from saccade.app.cluster import predicting
from saccade.app.cluster.connect import RaySettings, connected
from saccade.app.cluster.predicting import Predictor, predict_with_ray

pytest.importorskip("ray.data")


def predict(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "saccade", "predict", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.mark.slow
def test_lines_are_answered_as_without_ray_and_in_order(translator: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    lines = [f"the dog {'eats ' * (number % 5)}{number} ." for number in range(600)]
    lines[7] = ""
    file.write_text("".join(f"{line}\n" for line in lines))
    model = saccade.load(translator, device="cpu")
    alone = [model.predict(line, beam=1).text if line else "" for line in lines[:40]]
    workers = "--ray", "--ray-workers", "2", "--beam", "1"
    ended = predict(str(translator), str(file), *workers, "--json")
    assert ended.returncode == 0, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["source"] for row in rows] == lines
    assert [row["text"] for row in rows[:40]] == alone


@pytest.mark.slow
def test_of_images_the_same_is_known_as_without_ray_and_a_damaged_one_is_passed_over(
    classifier: Path, tmp_path: Path
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in range(40):
        Image.new("RGB", (40, 40), (5 * number, 90, 60)).save(images / f"{number:02}.png")
    damaged = images / "07.png"
    damaged.write_bytes(damaged.read_bytes()[:60])
    alone = predict(str(classifier), str(images), "--json")
    found = predict(str(classifier), str(images), "--json", "--ray", "--ray-workers", "2")
    assert alone.returncode == found.returncode == 1
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["file"] for row in rows] == sorted(map(str, images.iterdir()))
    for row, expected in zip(rows, json.loads(alone.stdout), strict=True):
        for guess, other in zip(row.pop("guesses", []), expected.pop("guesses", []), strict=True):
            assert guess["label"] == other["label"]
            assert guess["probability"] == pytest.approx(other["probability"], abs=1e-6)
        assert row == expected
    assert "07.png: damaged image" in found.stderr
    assert found.stderr.splitlines()[-1] == "saccade: 1 of 40 could not be read"


@pytest.mark.slow
def test_files_of_any_form_are_read_one_after_another_as_without_ray(
    understander: Path, tmp_path: Path
) -> None:
    texts = [f"a dog, {'runs ' * (number % 4)}{number} ." for number in range(12)]
    records = [{"id": number, "text": text} for number, text in enumerate(texts)]
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (tmp_path / "a.csv").write_text(
        "text,id\n" + "".join(f'"{text}",{number}\n' for number, text in enumerate(texts))
    )
    (tmp_path / "b.json").write_text(json.dumps(records, indent=1))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "d.csv").write_text("text\n")  # nothing but its first line
    (tmp_path / "e.jsonl").write_text(lines)
    (tmp_path / "f.txt").write_text("".join(f"{text}\r\n" for text in texts))
    files = [str(file) for file in sorted(tmp_path.iterdir())]
    ended = predict(str(understander), *files, "--ray", "--json")
    assert ended.returncode == 0, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["source"] for row in rows] == texts * 5
    assert [row["text"] for row in rows[:12]] == [row["text"] for row in rows[48:]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Ray warns of is its own affair
def test_a_single_table_is_read_by_ray_itself_as_without_ray(
    understander: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = [f"ein Hund, {'läuft ' * (number % 4)}{number} ." for number in range(30)]
    columns = {"id": list(range(30)), "text": texts, "more": [[1, 2]] * 30}
    table = pyarrow.table(columns)
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    lines = "".join(f"{json.dumps(record)}\n" for record in table.to_pylist())
    (tmp_path / "b.jsonl").write_text(lines)
    alone = saccade.load(understander, device="cpu")
    expected = [alone.predict(text).text for text in texts]
    monkeypatch.setattr(predicting, "_stored", None)  # nobody else reads them
    with connected(RaySettings(ray=True)) as ray:
        monkeypatch.setattr(predicting, "connected", lambda _: nullcontext(ray))
        for file in sorted(tmp_path.iterdir()):
            predict_with_ray(str(understander), (str(file),), json=True, device="cpu")
            rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert [row["source"] for row in rows] == texts, file.name
            assert [row["text"] for row in rows] == expected


def test_a_row_that_is_refused_while_others_are_answered_does_not_end_the_job(filler: Path) -> None:
    worker = Predictor(str(filler), "cpu", None)
    texts = ["the ___ dog eats .", "no blank here", "the dog ___ ."]
    (alone,) = worker({"given": texts[:1]})["answer"]
    first, refused, last = worker({"given": texts})["answer"]
    assert first == alone
    assert "text" in json.loads(last)
    assert list(json.loads(refused)) == ["error"]
    assert "blank" in json.loads(refused)["error"]
