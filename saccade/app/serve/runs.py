"""The runs that are served: found before the server starts, loaded while it already answers."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from saccade.app.api import load
from saccade.app.kinds import kind_for
from saccade.app.kinds.base import AnyModel
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.worker import Worker
from saccade.errors import ConfigError
from saccade.models import family
from saccade.train.storage.folder import RunFolder


class ServedRun:
    """A run folder, and its model once that is loaded. After that the folder is not needed."""

    def __init__(self, path: Path, *, order: int = 0) -> None:
        self.recipe = RunFolder(path).load_recipe()
        self.path, self.order = path.resolve(), order
        self.name = self.path.name
        self.kind = kind_for(self.recipe.task)
        self.serving = self.kind.serving
        self.model: AnyModel | None = None
        self.failed: str | None = None
        self.worker = Worker(self.name)
        self.lock = Lock()  # of the model: a comparison uses it from another run's thread

    def load(self, device: str) -> None:
        self.model = load(self.path, device=device)

    @property
    def tool(self) -> Any:
        """What decodes; refuses while there is no model."""
        if self.model is None and self.failed:
            raise RequestError(503, "not_loaded", f"{self.name} could not be loaded: {self.failed}")
        if self.model is None:
            raise RequestError(503, "loading", f"{self.name} is being loaded", retry_after=1)
        return self.model.tool

    def info(self) -> dict[str, Any]:
        """What the page and others may want to know before they ask."""
        told: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind.name,
            "takes": self.serving.takes,
            **self.serving.about(self.recipe.task),
            "recipe": family(self.recipe.model),
            "description": self.recipe.about,
            "loaded": self.model is not None,
        }
        if self.model is None:
            return told | {"parameters": None, "looks": None, "device": None}
        model = self.tool.model
        looks = self.serving.looks(model)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        told |= {"parameters": parameters, "looks": looks, "device": str(self.tool.device)}
        return told | self.serving.about_tool(self.tool)


def find_runs(paths: tuple[str, ...]) -> dict[str, ServedRun]:
    """The runs by name; refuses what cannot be served before anything is started."""
    if not paths:
        raise ConfigError("name at least one run: saccade serve RUN")
    runs: dict[str, ServedRun] = {}
    for order, path in enumerate(paths):
        run = ServedRun(Path(path), order=order)
        if run.name in runs:
            raise ConfigError(
                f"{runs[run.name].path} and {run.path} are both called {run.name}; "
                "rename one, for requests ask for runs by name"
            )
        runs[run.name] = run
    return runs


def run_named(runs: Mapping[str, ServedRun], name: str | None, field: str = "run") -> ServedRun:
    """The run that a request asks for; the first without a name."""
    if name is None:
        return next(iter(runs.values()))
    if name not in runs:
        there = ", ".join(runs)
        raise RequestError(
            404, "no_run", f"there is no run {name[:60]!r}; there are: {there}", field=field
        )
    return runs[name]
