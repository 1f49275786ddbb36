"""Some 250 mistakes: one line each, no traceback, and whatever way out it names is taken."""

import io
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from saccade.app.cli import main
from saccade.models.text.gpt import GptConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from tests.app.conftest import QUICK
from tests.app.drawer_runs import drawer_run
from tests.app.wrong_bench_commands import BENCH
from tests.app.wrong_cluster_commands import CLUSTERS
from tests.app.wrong_commands import EVERY as MOST
from tests.app.wrong_commands import Wrong
from tests.app.wrong_detection_commands import OBJECTS
from tests.app.wrong_drawing_commands import DRAWINGS
from tests.app.wrong_figure_commands import FIGURES
from tests.app.wrong_image_commands import CLASSES
from tests.app.wrong_joint_commands import JOINT
from tests.app.wrong_masked_commands import MASKED
from tests.app.wrong_matching_commands import MATCHING
from tests.app.wrong_reconstruction_commands import RECONSTRUCTION
from tests.app.wrong_scale_commands import SCALE
from tests.app.wrong_start_commands import STARTS
from tests.app.wrong_text_commands import FILES_OF_TEXT, UNDERSTANDING
from tests.marks import slow

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
SEEING = [*CLASSES, *DRAWINGS, *OBJECTS, *JOINT, *MATCHING, *RECONSTRUCTION]
EVERY = [
    *MOST,
    *FILES_OF_TEXT,
    *FIGURES,
    *SEEING,
    *MASKED,
    *SCALE,
    *BENCH,
    *CLUSTERS,
    *STARTS,
    *UNDERSTANDING,
]
HEADS = {
    "named.tsv": b"en\tde\n" + b"the dog\tder Hund\n" * 60,
    "chinese.txt": "人人生而自由在尊严和权利上一律平等\n".encode() * 60,
    "headless.tsv": b"good\ta fine day\nbad\twhat a mess\n" * 9,
    "one-label.tsv": b"text\tlabel\n" + b"a fine day\tgood\n" * 9,
}  # first lines that are no rows, or are some
SENTENCES = "I think therefore I am\nI like machine learning\n"


@pytest.fixture(scope="module")
def runs(
    translator: Path,
    writer: Path,
    captioner: Path,
    classifier: Path,
    detector: Path,
    tokenizer_of_images: Path,
    filler: Path,
    understander: Path,
    joint: dict[str, Path],
    matcher: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """A run of each kind, and a language model that looks back at eight words.

    They are copies: a way out may keep something in its run, and other tests share the originals.
    """
    place = tmp_path_factory.mktemp("runs")
    folder = place / "gpt"
    recipe = replace(
        RECIPES["gpt"],
        model=GptConfig(width=16, depth=1, heads=2, longest=12),
        task=LanguageSettings(unit="lines", level="words", sentences=60),
        train=QUICK,
    )
    train(recipe, folder, lambda event: None)
    shared = {"tr": translator, "lm": writer, "mlm": filler, "und": understander}
    shared |= {"cap": captioner, "cls": classifier, "det": detector, "mat": matcher}
    shared |= {"vae": tokenizer_of_images}
    names = {"ans": "answering", "ref": "referring", "fit": "fitting", "pre": "joint"}
    names["cho"] = "choosing"
    shared |= {"cel": joint["cells"], **{key: joint[name] for key, name in names.items()}}
    copies = {name: shutil.copytree(path, place / path.name) for name, path in shared.items()}
    return {**copies, "gpt": folder, "t2i": drawer_run(place / "dalle")}


@pytest.fixture(scope="module")
def workshop(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every sort, good and bad, and runs of which something is missing."""
    place = tmp_path_factory.mktemp("workshop")
    files: dict[str, bytes] = {
        "good.txt": SENTENCES.encode() * 20,
        "long.txt": b"I am\n" + b"I " * 40 + b"\n",
        "empty.txt": b"",
        "empty.tsv": b"",
        "binary.txt": b"good\n\xff\xfe\x00\x01\nb\0d\n",
        "latin.txt": "a\n\né\n".encode("latin-1"),
        "pairs.tsv": b"source\ttarget\n" + b"the dog\tle chien\n" * 60,
        "gaps.tsv": b"source\ttarget\n" + b"the dog\tle chien\n" * 60 + b"\tle chat\n",
        "labelled.tsv": b"text\tlabel\n" + b"a fine day\tgood\nwhat a mess\tbad\n" * 9,
        **HEADS,
        "broken.toml": b"model = [",
        "broken.json": b"{",
        "broken.jsonl": b"{\n",
        "broken.parquet": b"PAR1",
        "broken.txt.gz": b"\x1f\x8b\x08\x00",
        "broken.png": b"\x89PNG\r\n\x1a\nbroken",
        "broken.zip": b"PK\x03\x04broken",
        "folder/note.md": b"nothing of use",
        "taken.html/note.md": b"",
        "corpus/train.en": b"the dog eats\n" * 60,
        "corpus/train.de": b"der Hund isst\n" * 60,
    }
    for name, content in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content)
    weights, tokenizer, config = "model.safetensors", "tokenizer.json", "config.json"
    runs = {"half": (weights, None), "mute": (tokenizer, None)}
    runs |= {"garbled": (config, b"{"), "cut": (weights, b"cut")}
    for name, (part, content) in runs.items():
        (place / name).mkdir()
        for one in (weights, tokenizer, config):
            shutil.copy(translator / one, place / name)
        (place / name / part).unlink()
        if content is not None:
            (place / name / part).write_bytes(content)
    _put_images(place)
    return place


def _put_images(place: Path) -> None:
    """Some alone, and some in class folders."""
    Image.new("RGB", (40, 40), "red").save(place / "dot.png")
    for name in ("one-class/ant", "few/ant", "few/bee", "bad/ant", "bad/bee"):
        (place / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (40, 40), (50 * number, 9, 9)).save(place / name / f"{number}.png")
    (place / "list.json").write_bytes(b'[{"image": "dot.png", "label": "x"}]')
    (place / "headless.csv").write_bytes(b"dot.png,cat\n")
    (place / "dot.jsonl").write_bytes(b'{"image": "dot.png", "boxes": [[1, 2, 30, 40]]}\n')
    (place / "wide.jsonl").write_bytes(b'{"image": "dot.png", "boxes": [[1, 2, 300, 40]]}\n')
    (place / "bad/ant/0.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    (place / "photos.csv").write_bytes(b"file,label\nnone.png,ant\n")
    (place / "patients.csv").write_bytes(b"age,image,ant,bee\n70,few/ant/0.png,1,0\n")
    Image.new("F", (40, 40)).save(place / "heights.tif")
    Image.new("RGB", (40, 40)).save(place / "packed.tif", compression="jpeg")
    for name in ("yolo", "refcoco"):
        (place / name).mkdir()
        Image.new("RGB", (40, 40), "red").save(place / name / "1.png")
    (place / "yolo/1.txt").write_bytes(b"0 0.5 0.5 0.25 0.25\n")
    (place / "refcoco/refs(unc).p").write_bytes(b"")
    (place / "v2_train2014_annotations.json").write_bytes(b'{"info": {}, "annotations": []}')


def say(line: str, typed: bytes, monkeypatch: Patch) -> int:
    """The exit code of a command that is typed so."""
    monkeypatch.setattr(sys, "argv", ["saccade", *shlex.split(line)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def objection(error: str) -> list[str]:
    """The line of the error and all after it; before it may stand what was being done."""
    lines = error.splitlines()
    return lines[[line.startswith("saccade: ") for line in lines].index(True) :]


@pytest.fixture
def mistaken(
    wrong: Wrong,
    runs: dict[str, Path],
    workshop: Path,
    monkeypatch: Patch,
    capsys: Capture,
    tmp_path: Path,
) -> str:
    """What is said on the error stream, in a workshop of its own."""
    shutil.copytree(workshop, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for kind in ("captioning", "classification", "detection", "understanding", "joint"):
        monkeypatch.setattr(f"saccade.tasks.{kind}.data.HELD_BACK", 4)
    monkeypatch.setattr("saccade.tasks.reconstruction.data.HELD_BACK", 12)
    monkeypatch.setattr("saccade.tasks.masked.task.HELD_BACK", 40)
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    assert say(wrong.line.format(**runs), wrong.typed, monkeypatch) in (1, 2)
    return capsys.readouterr().err


def shown(wrong: Wrong) -> str:
    return wrong.line.replace("\x1b", "ESC")[:70]


@pytest.mark.parametrize("wrong", EVERY, ids=shown)
def test_a_mistake_gives_one_line(wrong: Wrong, mistaken: str) -> None:
    told = objection(mistaken)
    assert wrong.says in mistaken
    assert "Traceback" not in mistaken
    assert "'None'" not in mistaken  # is nothing that one can type
    assert "\x1b" not in mistaken
    report = "bad row" in told[0]  # the first bad rows of data are listed below it
    assert len(told) == 1 or (report and len(told) <= 13)


# The first of each command and of what it is told first, such as the recipe or the kind of run.
WAYS_OUT = {(*wrong.way_out.split()[:2],): wrong for wrong in reversed(EVERY) if wrong.way_out}


@pytest.mark.parametrize(
    "wrong",
    [wrong if wrong in WAYS_OUT.values() else slow((wrong,)) for wrong in EVERY if wrong.way_out],
    ids=shown,
)
def test_its_way_out_works_where_the_mistake_was_made(
    wrong: Wrong, mistaken: str, runs: dict[str, Path], monkeypatch: Patch, capsys: Capture
) -> None:
    assert wrong.says in mistaken
    code = say(wrong.way_out.format(**runs), wrong.typed, monkeypatch)
    assert code == 0, capsys.readouterr().err


def test_the_table_is_long_and_has_no_row_twice() -> None:
    lines = [wrong.line for wrong in EVERY]
    assert len(lines) >= 200
    assert len(set(lines)) == len(lines)
