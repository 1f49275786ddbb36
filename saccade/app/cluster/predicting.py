"""`saccade predict RUN big.txt --ray`: a batch job of Ray Data, its answers in the order of input.

Lines of text files, records of tables, or the images of folders; each worker loads
the run once, and answers as a server of that run would. What is not answered yet stays on disk or
in Ray's own bounded store.
"""

import json as json_format
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from saccade.app.api import load
from saccade.app.cli.options import MixedArguments, RunArgument
from saccade.app.cli.output import counting, say, tell
from saccade.app.cluster.connect import RaySettings, connected, ray_module
from saccade.app.kinds import kind_for
from saccade.app.kinds.base import Serving
from saccade.app.kinds.image_files import (
    SomeFailedError,
    check_images,
    given_images,
    one_field,
)
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.steps import PredictJob, Steps
from saccade.data.batching.blocks import blocks
from saccade.data.images.given import pixels_of
from saccade.data.readers.text.find import find_texts
from saccade.data.readers.text.lines import PACKED
from saccade.data.readers.text.read import text_rows
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError, SaccadeError
from saccade.train.storage.folder import RunFolder

BATCH = {"text": 256, "image": 32}  # rows that a worker answers together
STORED, STORED_CHARACTERS = 2_048, 1_000_000  # of texts that go into Ray's store together
MOST_TOKENS = 100  # that a language model writes for each


def predict_with_ray(
    run: RunArgument,
    given: MixedArguments = (),
    /,
    *,
    ray: RaySettings = RaySettings(ray=True),  # noqa: B008
    beam: int | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Predict with the workers of a Ray cluster: files of texts, or images, in order.

    Each answer is a line: the text, or the image and what it shows. What cannot be read is told on
    standard error and passed over; the exit code is then 1.

    Args:
        run: folder of the run.
        given: files of texts (a text a line, or .jsonl, .parquet, .csv … with a text column), or
            images and folders of them.
        ray: the workers.
        beam: hypotheses kept while decoding, of runs that decode; theirs by default.
        device: cpu, cuda …; auto takes the fastest that a worker has.
        json: print all that is known of each, a JSON object a line.
    """
    if not given:
        raise ConfigError("--ray reads files; name some, for standard input goes without it")
    kind = kind_for(RunFolder(Path(run)).load_recipe().task)
    if kind.serving.pairs:
        raise ConfigError(f"{run} reads images with texts, which --ray does not; leave it out")
    if beam is not None and "decoding" not in signature(kind.predict).parameters:
        raise ConfigError(f"beam={beam} is of runs that write words; leave it out")
    of_worker = {"run": str(Path(run).resolve()), "device": device, "beam": beam}
    name = "source" if kind.serving.takes == "text" else "file"
    failed = 0
    shown = not sys.stdout.isatty()  # answers are
    with connected(ray), counting("predicting", shown=shown) as progress:
        rows = _texts(given) if kind.serving.takes == "text" else _images(given)
        answers = rows.data.map_batches(
            Predictor,
            batch_size=BATCH[kind.serving.takes],
            concurrency=ray.ray_workers,
            num_cpus=1,
            fn_constructor_kwargs=of_worker,
        )
        for done, row in enumerate(_in_order(answers), start=1):
            failed += not _print_row(
                name, row["given"], json_format.loads(row["answer"]), json=json
            )
            progress(done, rows.total)
    if failed:
        raise SomeFailedError(f"{failed:,} of {rows.total:,} could not be read")


def _print_row(name: str, given: str, answer: dict[str, Any], *, json: bool) -> bool:
    """Print what was found, or say why there is nothing; whether there is something."""
    if "error" in answer:
        say(answer["error"])
    if json:
        tell(json_format.dumps({name: given, **answer}))
    elif "error" not in answer:
        if "text" not in answer:
            raise ConfigError("these answers are images, which no line can hold; add --json")
        of = () if name == "source" else (one_field(given),)
        tell(*of, one_field(answer["text"]))
    return "error" not in answer


class NoCounter:
    """Implements `StepCounter`: a batch job counts no steps."""

    def inc(self, amount: int | float = 1) -> None:
        pass


@dataclass
class BatchJob:
    """Implements `ServedJob`: one row, and what the run says of it."""

    work: PredictJob
    answer: dict[str, Any] | None = None
    gone: bool = False

    def finish(self, answer: list[dict[str, Any]]) -> None:
        (self.answer,) = answer

    def tell(self, draft: dict[str, Any]) -> None:
        pass


class Predictor:
    """A worker: what it answers depends on nothing but the run and what it is given."""

    def __init__(self, run: str, device: str, beam: int | None) -> None:
        self._model: Any = load(run, device=device)
        self._serving: Serving = kind_for(self._model.recipe.task).serving
        self._how = Decoding(sample=self._serving.draws)
        if beam is not None:
            self._how = Decoding(beam=beam)
        self._steps = Steps(NoCounter(), NoCounter(), lambda: None)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        given = [str(one) for one in batch["given"]]
        paths = map(Path, batch.get("path", given))
        rows = [self._read(one, path) for one, path in zip(given, paths)]
        if jobs := [row for row in rows if isinstance(row, BatchJob)]:
            self._answer(jobs)
        answers = [row.answer if isinstance(row, BatchJob) else row for row in rows]
        return {"given": given, "answer": [json_format.dumps(answer) for answer in answers]}

    def _answer(self, jobs: list[BatchJob]) -> None:
        """Answer some jobs together, or one by one where one of them is refused in the midst."""
        try:
            self._serving.predict(self._model.tool, jobs, self._steps)
        except (SaccadeError, RequestError) as error:
            if len(jobs) == 1:
                jobs[0].answer = {"error": str(error)}
            for job in jobs if len(jobs) > 1 else ():
                self._answer([job])

    def _read(self, given: str, path: Path) -> BatchJob | dict[str, Any]:
        """A row as the run wants it, or what there is to say of one that it cannot read."""
        serving, tool, wanted = self._serving, self._model.tool, given
        if serving.takes == "text" and not given.strip():
            return {"text": ""}
        try:
            if serving.takes == "image":
                wanted = serving.image_to_predict(tool, partial(_decode, path, given))
            serving.check(self._model.name, tool, wanted)
        except (SaccadeError, RequestError) as error:
            return {"error": str(error)}
        return BatchJob(PredictJob((wanted,), self._how, 1, MOST_TOKENS, stream=False))


def _decode(path: Path, name: str, short: int) -> UInt8[Tensor, "3 H W"]:
    return pixels_of(path, name=name, short=short)


class RayRows(NamedTuple):
    """What Ray reads, under the name `given`, and how many there are."""

    data: Any
    total: int


def _texts(given: tuple[str, ...]) -> RayRows:
    """Lines and records; a first pass of our own refuses bad ones."""
    count, paths = 0, [Path(name) for name in given]
    for name, path in zip(given, paths):
        if not path.is_file():
            raise DataError(f"{name[:200]} is no file; --ray reads files of texts")
        for number, row in enumerate(text_rows(path), start=1):
            if not isinstance(row, str) and row.reason != "empty":
                raise DataError(f"{row} (line {number}); mend it, or predict without --ray")
            count += 1
    data = _read_by_ray(paths[0]) if len(paths) == 1 else None
    if data is None:
        data = _stored(paths)  # what is joined by Ray comes out in turns
    return RayRows(data.rename_columns({"text": "given"}), count)


def _read_by_ray(path: Path) -> Any:
    """A file that Ray reads as we do, on its workers; None of another form."""
    ray_data, whole = _quiet_data(), str(path.resolve())
    match "" if path.suffix in PACKED else find_texts(path, "train").form:
        case "jsonl":
            return ray_data.read_json(whole).select_columns(["text"])
        case "parquet":
            return ray_data.read_parquet(whole).select_columns(["text"])
        case "txt":
            return ray_data.read_text(whole, drop_empty_lines=False)
        case _:
            return None


def _stored(paths: Sequence[Path]) -> Any:
    """The texts of files one after another, put into Ray's store a block at a time."""
    pyarrow, put = import_module("pyarrow"), ray_module().put
    rows = (row for path in paths for row in text_rows(path))
    texts = (row if isinstance(row, str) else "" for row in rows)
    sized = blocks(texts, most=STORED, size=len, total=STORED_CHARACTERS)
    tables = (pyarrow.table({"text": pyarrow.array(block, pyarrow.string())}) for block in sized)
    return _quiet_data().from_arrow_refs([put(table) for table in tables])


def _images(given: tuple[str, ...]) -> RayRows:
    """Names of images; each is read where it is looked at."""
    check_images(given)
    names = list[dict[str, str]]()
    for name, image in given_images(given):
        path = Path(name)
        if isinstance(image, DataError) or not path.is_file():
            raise DataError(f"{name} is no file of an image; --ray reads files and folders of them")
        names.append({"given": name, "path": str(path.resolve())})
    blocks = -(-len(names) // BATCH["image"])
    return RayRows(_quiet_data().from_items(names, override_num_blocks=blocks), len(names))


def _quiet_data() -> Any:
    """Ray Data that keeps the order and says nothing of its own."""
    ray_data = ray_module("ray.data")
    context = ray_data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.print_on_execution_start = False
    context.enable_progress_bars = False
    return ray_data


def _in_order(answers: Any) -> Iterator[dict[str, str]]:
    """Rows as they are known; what went wrong in a worker is told in its own words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fewer rows than workers could take
            yield from answers.iter_rows()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[-1][:300]
        raise DataError(f"a worker has failed: {reason}; try without --ray") from error
