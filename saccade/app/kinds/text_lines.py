"""`saccade predict` for kinds that read text: each line's answer is told as soon as it is known."""

import sys
from collections.abc import Callable
from typing import Any

from saccade.app.cli.inputs import Check, InputLines
from saccade.app.cli.output import counting, json_list, tell
from saccade.tasks.base import Progress

Rows = list[dict[str, Any]]  # each with its `text` and, where there are more, `others`


def predict_lines(
    lines: InputLines,
    predict: Callable[[list[str], int, Progress], list[Rows]],
    *,
    blank: Rows,
    check: Check,
    doing: str,
    json: bool,
    keeps_lines: bool = False,
    show: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Print what `predict` makes of each text, given the number of the first; `blank` is of none.

    Unless it `keeps_lines`, a text with a line end in it is put on one line. `show` prints a row in
    a way of its own.
    """
    done = 0

    def advance(count: int, _: int) -> None:
        progress(done + count, lines.total)

    def show_texts(row: dict[str, Any]) -> None:
        for one in (row, *row.get("others", [])):
            tell(one["text"] if keeps_lines else one["text"].replace("\n", " "))

    # On a terminal the answers themselves are the progress.
    with (
        counting(doing, shown=not sys.stdout.isatty()) as progress,
        json_list(wanted=json) as add,
    ):
        for batch in lines.batches(check):
            texts = [line for line in batch if line is not None]
            answers = iter(predict(texts, done, advance))
            for line in batch:
                for row in blank if line is None else next(answers):
                    (add if json else show or show_texts)(row)
            done += len(batch)
