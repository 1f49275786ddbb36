"""`saccade predict RUN big.txt --ray`: a batch job of Ray Data, its answers in the order of input.

Lines of text files, records of JSON Lines and Parquet, or the images of folders and archives; each
worker loads the run once. What is not answered yet stays on disk or in Ray's own bounded store.
"""

import json as json_format
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import tyro

from saccade.app.api import load
from saccade.app.cli.output import tell
from saccade.app.cluster.connect import RaySettings, connected, ray_module
from saccade.app.kinds import kind_for
from saccade.app.kinds.image_files import check_images, given_images
from saccade.data.readers.text.read import text_rows
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError
from saccade.train.folder import RunFolder

BATCH = 256  # rows that a worker answers together


def predict_with_ray(
    run: tyro.conf.Positional[str],
    given: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    ray: RaySettings = RaySettings(ray=True),  # noqa: B008
    beam: int | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Predict with the workers of a Ray cluster: files of texts, or images, in order.

    Args:
        run: folder of the run.
        given: files of texts (a text a line, .jsonl or .parquet with a text column), or images,
            folders and archives of them.
        ray: the workers.
        beam: hypotheses kept while decoding, of runs that decode; theirs by default.
        device: cpu, cuda …; auto takes the fastest that a worker has.
        json: print a JSON object for each, one a line.
    """
    if not given:
        raise ConfigError("--ray reads files; name some, for standard input goes without it")
    kind = kind_for(RunFolder(Path(run)).load_recipe().task)
    serving = kind.serving
    if beam is not None and "decoding" not in signature(kind.predict).parameters:
        raise ConfigError(f"beam={beam} is of runs that write words; leave it out")
    how = {} if beam is None else {"beam": Decoding(beam=beam).beam}
    of_worker = {"run": str(Path(run).resolve()), "device": device, "how": how}
    name = "source" if serving.takes == "text" else "file"
    with connected(ray):
        data = _texts(given) if serving.takes == "text" else _images(given)
        answers = data.map_batches(
            Predictor,
            batch_size=BATCH,
            concurrency=ray.ray_workers,
            num_cpus=1,
            fn_constructor_kwargs=of_worker,
        )
        for row in _in_order(answers):
            if json:
                tell(json_format.dumps({name: row["given"], "text": row["text"]}))
            elif name == "source":
                tell(row["text"].replace("\n", " "))
            else:
                tell(row["given"], row["text"].replace("\n", " "))


class Predictor:
    """A worker: what it answers depends on nothing but the run and what it is given."""

    def __init__(self, run: str, device: str, how: dict[str, Any]) -> None:
        self._model, self._how = load(run, device=device), how

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        given = [str(one) for one in batch["given"]]
        filled = [one for one in given if one.strip()]
        model: Any = self._model
        answers = iter(model.predict(filled, **self._how) if filled else [])
        return {"given": given, "text": [str(next(answers)) if x.strip() else "" for x in given]}


def _texts(given: tuple[str, ...]) -> Any:
    """Rows under the name `given`, as Ray reads them; a first pass of our own refuses bad ones."""
    ray_data = ray_module("ray.data")
    context = ray_data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    whole: Any = None
    for name in given:
        path = Path(name)
        if not path.is_file():
            raise DataError(f"{name[:200]} is no file; --ray reads files of texts")
        for number, row in enumerate(text_rows(path), start=1):
            if not isinstance(row, str) and row.reason != "empty":
                raise DataError(f"{row} (line {number}); mend it, or predict without --ray")
        readers = {".jsonl": ray_data.read_json, ".parquet": ray_data.read_parquet}
        if path.suffix in readers:
            data = readers[path.suffix](str(path.resolve())).select_columns(["text"])
        else:
            data = ray_data.read_text(str(path.resolve()), drop_empty_lines=False)
        whole = data if whole is None else whole.union(data)
    return whole.rename_columns({"text": "given"})


def _images(given: tuple[str, ...]) -> Any:
    """Names of images; each is read where it is looked at."""
    check_images(given)
    ray_data = ray_module("ray.data")
    ray_data.DataContext.get_current().execution_options.preserve_order = True
    ray_data.DataContext.get_current().enable_progress_bars = False
    names = list[dict[str, str]]()
    for name, image in given_images(given):
        path = Path(name)
        if isinstance(image, DataError) or not path.is_file():
            raise DataError(f"{name} is no file of an image; --ray reads files and folders of them")
        names.append({"given": str(path.resolve())})
    return ray_data.from_items(names, override_num_blocks=-(-len(names) // BATCH))


def _in_order(answers: Any) -> Iterator[dict[str, str]]:
    """Rows as they are known; what went wrong in a worker is told in its own words."""
    try:
        yield from answers.iter_rows()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[-1][:300]
        raise DataError(f"a worker has failed: {reason}; try without --ray") from error
