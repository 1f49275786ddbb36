"""Runs in scripts without blanks, from right to left and of emoji, in every output."""

import json
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from saccade.app.cli import main
from saccade.app.cli.output import print_scores, warnings_said
from saccade.app.look.draw.fonts import FontWarning
from tests.scripts import WORLDS, pairs, train_on

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", params=sorted(WORLDS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_on(request.param, tmp_path_factory.mktemp("scripts"), steps=60, vocabulary=420)


Command = Callable[..., tuple[str, str]]


@pytest.fixture
def saccade(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process: what it wrote to standard output and standard error."""

    def command(*arguments: object, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["saccade", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        out, err = capsys.readouterr()
        return out, err

    return command


@pytest.mark.slow
def test_every_output_shows_words_or_pieces_of_a_layer_and_head(
    run: Path, tmp_path: Path, saccade: Command
) -> None:
    source, _ = pairs(run.name, 1, seed=7)[0]
    selected: list[str] = ["--units", "pieces", "--layer", "1", "--head", "0"]
    for more in ([], selected):
        for ending in ("png", "svg", "json"):
            out = tmp_path / f"look.{ending}"
            printed, _ = saccade("look", run, source, "--beam", 1, "-o", out, *more)
            assert "←" in printed
        table = json.loads((tmp_path / "look.json").read_text())
        assert len(table["columns"]) > 2
        assert "".join(table["columns"]).replace("<end>", "").replace(" ", "") == source.replace(
            " ", ""
        )
        if more:
            assert "decoder.1.cross, head 0" in table["title"]
            assert table["columns"][-1] == "<end>"
        root = ET.parse(tmp_path / "look.svg").getroot()
        texts = {e.text: e.attrib for e in root.iter(f"{SVG}text")}
        leftward = [a for a in texts.values() if a.get("direction") == "rtl"]
        assert bool(leftward) == (run.name == "arabic-english")
        assert "Emoji" in root.attrib["font-family"]
        with Image.open(tmp_path / "look.png") as drawn:
            assert min(drawn.size) > 200


@pytest.mark.slow
def test_scores_say_which_tokenizer_was_taken_and_cut_nothing_off(
    run: Path, saccade: Command
) -> None:
    found = json.loads(saccade("eval", run, "--beam", 1, "--json")[0])
    taken = {"chinese-japanese": ("char", "ja-mecab")}.get(run.name, ("13a",))
    assert found["tokenizer"].split(",")[0] in taken
    assert {"bleu", "chrf", "ter"} <= found.keys()
    assert sum(found["sentences_by_length"].values()) == found["sentences"]
    printed = saccade("eval", run, "--beam", 1, "--tokenize", "char")[0]
    assert "tok:char|smooth:exp|version:" in printed
    assert all(found[name] in printed for name in ("chrf_signature",))
    _, refused = saccade("look", run, "x", "--layer", 9, code=2)
    assert refused.startswith("saccade: --layer 9 is not there; there are 0 (decoder.0.")


def test_scores_are_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    long = "nrefs:1|" + "x" * 200
    print_scores({"bleu": 12.345, "signature": long, "ter": None, "by_part": {"我们": 1}})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith(long)
    assert lines[2].split() == ["ter", "–"]
    assert [line.split()[-1] for line in lines] == ["12.35", long, "–", "1"]


def test_what_a_picture_warns_of_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings_said():
        for _ in range(2):
            warnings.warn("no font here has 猫", FontWarning, stacklevel=1)
    assert capsys.readouterr().err == "saccade: no font here has 猫\n"
