"""What the app asks of a kind of work: to load, predict, evaluate, look and serve."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from torch import nn

from saccade.app.serve.steps import PredictFields, ServedJob, Steps
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError
from saccade.tasks.base import TaskSettings
from saccade.train.folder import RunFolder
from saccade.train.recipe import Recipe

Takes = Literal["text", "image"]
Engine = Literal["saccade", "ctranslate2"]
DecodeImage = Callable[[int], Any]  # a shortest side in pixels → the image, at least as large


@dataclass(frozen=True)
class LoadedRun:
    """A run's folder and recipe, and its network with the best weights."""

    folder: RunFolder
    recipe: Recipe
    network: nn.Module

    @property
    def name(self) -> str:
        return self.folder.path.name

    def asset(self, name: str) -> Path:
        """A file that the task has kept, such as its tokenizer."""
        return self.folder.path / name


@runtime_checkable
class AnyModel(Protocol):
    """What `saccade.load` gives, of whatever kind."""

    name: str
    recipe: Recipe

    @property
    def tool(self) -> Any: ...

    @property
    def network(self) -> nn.Module: ...


class Serving(ABC):
    """How runs of a kind answer requests.

    What something becomes never depends on what is decoded beside it: only what is searched for,
    and with equal settings, is taken together.
    """

    takes: ClassVar[Takes] = "text"
    draws: ClassVar[bool] = False  # unless a search is asked for; else the other way round

    def refuse(self, run: str, fields: PredictFields) -> None:  # noqa: B027
        """Refuse settings that runs of this kind have no use for."""

    def check(self, run: str, tool: Any, given: Any) -> int:
        """Refuse what a model cannot read, else its size in tokens. This is not much work."""
        return 1

    @abstractmethod
    def predict(self, tool: Any, jobs: Sequence[ServedJob], steps: Steps) -> None:
        """Answer each of some predictions that may be decoded together."""

    @abstractmethod
    def look(self, models: list[Any], given: Any, settings: Any) -> Any:
        """The look document of one run, or of two side by side."""

    def image_to_predict(self, tool: Any, decode: DecodeImage) -> Any:
        """An image as `predict` wants it."""
        raise NotImplementedError

    def image_to_look_at(self, tools: list[Any], decode: DecodeImage) -> Any:
        """An image as `look` wants it."""
        return self.image_to_predict(tools[0], decode)

    def about(self, task: TaskSettings) -> dict[str, Any]:
        """What else a client may want to know before it asks."""
        return {}


@dataclass(frozen=True)
class Kind:
    """A kind of work. `predict`, `evaluate` and `look` are commands with options of their own."""

    name: str
    load: Callable[[LoadedRun], Any]
    predict: Callable[..., None]
    evaluate: Callable[..., None]
    look: Callable[..., None]
    serving: Serving
    with_engine: Callable[[Any, Path], Any] | None = None  # another engine's export decodes


def make_decoding(fields: dict[str, Any]) -> Decoding:
    """Check the names of decoding settings that came as keywords."""
    known = Decoding.__dataclass_fields__
    for name in fields:
        if name not in known:
            raise ConfigError(f"{name} is not a decoding setting; there are: {', '.join(known)}")
    return Decoding(**fields)


def load_alike(run: str, compare: str | None, device: str) -> list[Any]:
    """A run, and one to compare it with, which must do the same work."""
    from saccade.app.api import load

    models: list[AnyModel] = [load(one, device=device) for one in (run, compare) if one is not None]
    if len({type(model) for model in models}) > 1:
        names = " and ".join(model.name for model in models)
        raise ConfigError(f"{names} do different work; compare two of a kind")
    return models
