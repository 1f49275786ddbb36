"""Rows about images in one JSON document, as they are given out.

    VQA v2     {"questions": [{"image_id", "question", "question_id"}]}, and in a file beside it
               {"annotations": [{"question_id", "answers": [{"answer"}]}]}
    GQA        {"05451384": {"imageId", "question", "answer"}, …}
    VizWiz     [{"image", "question", "answers": [{"answer"}]}]
    CLEVR      {"questions": [{"image_filename", "question", "answer"}]}
    TextVQA    {"data": [{"image_id", "question", "answers"}]}

The "line" of a bad row is its place among them, from 1.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, cast

from saccade.data.readers.columns import Table
from saccade.data.readers.images.coco import is_id
from saccade.data.readers.images.source import TableSource, table_file, table_source
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import fields_of, json_value, shown_keys
from saccade.errors import DataError

_LISTS = ("questions", "data", "rows")
_ANSWERED_BY = "annotations"
_KIND = re.compile(r"(openended|multiplechoice)_", re.IGNORECASE)
_ALSO = {"direct_answers": "answers"}  # of A-OKVQA


def document_table(source: TableSource) -> Table:
    """The rows of a document."""
    name = source.file.name
    document = _document(source)
    rows = _rows(document, name)
    answers = _answers(source) if _unanswered(document, rows) else {}

    def record(raw: Any) -> dict[str, Any]:
        fields = {_ALSO.get(key, key): value for key, value in fields_of(raw).items()}
        if answers:
            asked = fields.get("question_id")
            fields["answers"] = answers.get(asked) if is_id(asked) else None
        return fields

    return Table([], rows, record)


def is_answers(name: str) -> bool:
    """Whether a file holds the answers to the questions in another."""
    return name.lower().removesuffix(".gz").endswith(f"_{_ANSWERED_BY}.json")


def _document(source: TableSource) -> Any:
    name = source.file.name
    try:
        return json_value(source.document().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8: at byte {error.start}; save it as UTF-8") from None
    except BadRow as bad:
        raise DataError(f"{name}: {bad}; fetch it again") from None


def _rows(document: Any, name: str) -> list[Any]:
    if isinstance(document, list):
        return cast(list[Any], document)
    fields = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    for key in _LISTS:
        if isinstance(fields.get(key), list):
            return fields[key]
    if fields and all(isinstance(one, dict) for one in fields.values()):
        return list(fields.values())
    if _ANSWERED_BY in fields:
        raise DataError(
            f"{name} has annotations and no questions; give the file with the questions, such as "
            "v2_OpenEnded_mscoco_train2014_questions.json, with this one beside it"
        )
    raise DataError(
        f"{name} has no rows: neither a list of them, nor one under {' or '.join(_LISTS)}, nor an "
        f"object for each; it has {shown_keys(fields)}"
    )


def _unanswered(document: Any, rows: list[Any]) -> bool:
    """Whether these are VQA's questions, whose answers have a file of their own."""
    first: Any = rows[0] if rows else None
    known = isinstance(document, dict) and isinstance(first, dict) and "question_id" in first
    return known and not {"answer", "answers", *_ALSO} & set(cast(dict[str, Any], first))


def _answers(source: TableSource) -> dict[Any, list[str]]:
    """What was answered to each question, by its id."""
    path = PurePosixPath(source.entry.name)
    beside = _KIND.sub("", path.name).replace("questions", _ANSWERED_BY)
    if beside == path.name:
        raise DataError(
            f"{source.file.name} has questions without answers; write 'answer' into each, or name "
            "a split that has answers"
        )
    entry = table_file(beside, source.entry.folder, str(path.with_name(beside)))
    try:
        found = table_source(source.tree, entry, whole=source.whole)
    except DataError:
        raise DataError(
            f"{source.file.name} has questions without answers: no {beside} beside it; put it "
            "there, or name a split that has answers"
        ) from None
    document = _document(found)
    listed: Any = document.get(_ANSWERED_BY) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise DataError(f"{found.file.name} has no list of {_ANSWERED_BY}; fetch it again")
    rows = cast(list[Any], listed)
    return {one["question_id"]: _said(one) for one in rows if _is_answer(one)}


def _is_answer(one: Any) -> bool:
    return isinstance(one, dict) and is_id(cast(dict[str, Any], one).get("question_id"))


def _said(one: dict[str, Any]) -> Any:
    """All answers that say something; a single one where no list of them is given out."""
    every = one.get("answers")
    if not isinstance(every, list):
        return one.get("multiple_choice_answer")
    return [said for said in cast(Iterable[Any], every) if not _is_blank(said)]


def _is_blank(said: Any) -> bool:
    bare: Any = cast(dict[str, Any], said).get("answer") if isinstance(said, dict) else said
    return isinstance(bare, str) and not bare.strip()
