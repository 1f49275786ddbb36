"""Every command and snippet of the documentation is run or read by what it is for, or is marked."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import COMMANDS, EVERY, OF_THE_SITE, PAGES, ROOT, Block, transcript_commands
from tests.docs.commands import check_program
from tests.docs.shell import BASH, programs_run
from tests.docs.snippets import check_snippet

MARKS = {"text": {"printed", "layout"}, "json": {"", "printed"}, "jsonl": {""}}
MARKS |= {"python": {"", "run"}} | {language: {""} for language in (*COMMANDS, *OF_THE_SITE)}
TIMES = re.compile(r"\b\d+:\d\d\b|tokens/s|\d s\b|\bms\b")
MACHINE = re.compile(r"\b(cores?|CPU|H200|GPU|EPYC)\b")
COMMAND = re.compile(r"`[^`]*(saccade|make|curl)\b[^`]*`|```")


def named(blocks: list[Block]) -> Any:
    return pytest.mark.parametrize("block", blocks, ids=str)


def test_all_pages_are_read() -> None:
    assert len(PAGES) > 20
    assert len(EVERY) > 100
    assert {block.page for block in EVERY} > {"README.md", "docs/start.md"}


@named(EVERY)
def test_every_block_says_what_it_is(block: Block) -> None:
    assert block.language != "indented", "put it between fences and say what it is"
    assert block.language in MARKS, f"`{block.language}` is none of {', '.join(MARKS)}"
    assert block.mark in MARKS[block.language], "tests/docs/blocks.py tells which marks there are"


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@named([block for block in EVERY if block.language in COMMANDS])
def test_every_command_is_one_with_options_that_are_there(block: Block, tmp_path: Path) -> None:
    run = programs_run(transcript_commands(block), tmp_path)
    assert run, "there is no command in it"
    for one in run:
        check_program(tuple(one))


@named([block for block in EVERY if block.language == "console" or block.mark == "printed"])
def test_what_is_printed_names_its_command_and_its_times_a_machine(block: Block) -> None:
    assert block.language == "console" or COMMAND.search(block.beside), "by which command?"
    if TIMES.search(block.text):
        assert MACHINE.search(block.beside), "times of which machine? say it beside the block"


@named([block for block in EVERY if block.language in ("json", "jsonl")])
def test_json_can_be_read(block: Block) -> None:
    rows = block.text.splitlines() if block.language == "jsonl" else [block.text]
    assert [json.loads(row) for row in rows]


PYTHON: dict[str, list[Block]] = defaultdict(list)
for one in EVERY:
    if one.language == "python":
        PYTHON[one.page].append(one)


@pytest.mark.parametrize("page", PYTHON)
def test_snippets_have_names_and_keywords_that_are_there(page: str) -> None:
    known: dict[str, Any] = {}
    for block in PYTHON[page]:
        try:
            check_snippet(block.text, known)
        except (AssertionError, SyntaxError) as error:
            pytest.fail(f"{block}: {error}")


RUN = [page for page, blocks in PYTHON.items() if any(block.mark == "run" for block in blocks)]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_snippets_that_say_so_run_and_print_what_follows_them(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = [block for block in EVERY if block.page == page]
    for block, following in zip(blocks, [*blocks[1:], None]):
        if block.mark != "run":
            continue
        exec(compile(block.text, str(block), "exec"), names)
        printed = capsys.readouterr().out
        end = block.line + block.text.count("\n") + 2
        if following is not None and following.mark == "printed" and following.line == end:
            assert printed == following.text, following


INLINE = re.compile(r"(?<!`)`(saccade (?:\w+)[^`\n]*)`(?!`)")
SENTENCES = [
    (f"{page.relative_to(ROOT)}", found)
    for page in PAGES
    for found in dict.fromkeys(
        INLINE.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    )
]


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_commands_within_sentences_are_there_too(tmp_path: Path) -> None:
    assert len(SENTENCES) > 50
    wrong: list[str] = []
    for page, command in SENTENCES:
        try:
            for one in programs_run(command, tmp_path):
                check_program(tuple(one))
        except AssertionError as error:
            wrong.append(f"{page}: {error}")
    assert wrong == []
