"""What the app asks of a kind of work: to load, predict, evaluate, look and serve."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

from torch import nn

from saccade.app.cli.inputs import is_page
from saccade.app.look.settings import LookSettings
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import PredictFields, ServedJob, Steps
from saccade.attention.look.watching import head_counts
from saccade.decode.engine import Decoding
from saccade.errors import ConfigError, DataError
from saccade.printable import printable
from saccade.tasks.base import TaskSettings
from saccade.train.recipe import Recipe
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.scores import keep_scores

Chosen = TypeVar("Chosen", bound=TaskSettings)
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
class UsesModel(Protocol):
    """What a task uses its model with, such as a translator."""

    @property
    def model(self) -> Any: ...


Tool = TypeVar("Tool", bound=UsesModel)


class TrainedModel(Generic[Tool]):
    """What `saccade.load` gives; each kind of work has its own, with what it can be asked."""

    def __init__(self, name: str, recipe: Recipe, tool: Tool) -> None:
        self.name, self.recipe, self.tool = name, recipe, tool

    @property
    def network(self) -> nn.Module:
        """The module itself, for `saccade.looking` and for anything else that torch can do."""
        return self.tool.model

    def __repr__(self) -> str:
        weights = list(self.network.parameters())
        size, where = sum(weight.numel() for weight in weights), weights[0].device
        return f"{type(self).__name__}({self.name!r}, {size:,} parameters, on {where})"


AnyModel = TrainedModel[Any]


class Serving(ABC):
    """How runs of a kind answer requests.

    What something becomes never depends on what is decoded beside it: only what is searched for,
    and with equal settings, is taken together.
    """

    takes: ClassVar[Takes] = "text"
    draws: ClassVar[bool] = False  # unless a search is asked for; else the other way round
    pairs: ClassVar[bool] = False  # whether each image comes with a text
    does: str  # what runs of the kind do, in a refusal
    uses: ClassVar[frozenset[str]] = frozenset()  # settings of a request beside what is given
    instead: ClassVar[Mapping[str, str]] = {}  # the way out where one is of no use, if there is any

    def refuse(self, run: str, fields: PredictFields) -> None:
        """Refuse settings that runs of this kind have no use for."""
        for name in fields.changed(draws=self.draws):
            if name not in self.uses:
                way_out = self.instead.get(name, f"leave {name} out")
                raise invalid(f"{run} {self.does}: {way_out}", name)

    def looks(self, model: nn.Module) -> bool:
        """Whether there is anything to look at."""
        return bool(head_counts(model))

    def classes(self, tool: Any, given: Any) -> Sequence[str]:
        """Those whose traces a look at this may be asked for; none where there are no classes."""
        return ()

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

    def with_text(self, tool: Any, image: Any, text: str, boxes: Any) -> Any:
        """An image and a text about it as `check`, `predict` and `look` want them; boxes are rows
        of left, top, right and bottom in pixels, or None.
        """
        raise NotImplementedError

    def about(self, task: TaskSettings) -> dict[str, Any]:
        """What else a client may want to know before it asks."""
        return {}

    def about_tool(self, tool: Any) -> dict[str, Any]:
        """The same, of what only a loaded model can tell."""
        return {}


@dataclass(frozen=True)
class Exporter:
    """How runs of a kind are written for another engine or library.

    `check` refuses a run that it has no counterpart for; `fill` writes into a folder, given how
    weights are stored, and gives the README. `assets` are what the task has kept: they come along
    as they are, unless `fill` writes them otherwise.
    """

    check: Callable[[Recipe], None]
    fill: Callable[[LoadedRun, Path, str], str]
    assets: tuple[str, ...]
    packages: tuple[str, ...] = ()
    quantizes: bool = False


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
    exports: Mapping[str, Exporter] = field(default_factory=dict[str, Exporter])  # by where to


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Which data to score on.

    Args:
        split: test by default; valid, a test file's name, or another split of built-in data.
        data: score on other data than the run's own; a single file is scored as a whole.
        skip_bad: this many bad rows are skipped and counted; the run's own number by default.
        keep: keep the scores in the run, for `saccade compare`.
        cache: folder for tokens and decoded images, kept between runs; else SACCADE_CACHE names it.
    """

    split: str = ""
    data: str = ""
    skip_bad: int | None = None
    keep: bool = False
    cache: str = ""

    def __post_init__(self) -> None:
        if self.keep and self.data:
            raise ConfigError(
                f"--keep is for the run's own data, not {printable(self.data)}; leave --data out, "
                "or --keep"
            )

    def kept(self, run: str, found: dict[str, Any]) -> dict[str, Any]:
        """What was found, kept in the run where that was asked for."""
        if self.keep:
            keep_scores(RunFolder(Path(run)), self.split or "test", found)
        return found

    def settings(self, own: Chosen, **more: Any) -> Chosen:
        """A task's settings with these data in place of its own."""
        given = {"data": self.data} if self.data else {}
        bound = {} if self.skip_bad is None else {"skip_bad": self.skip_bad}
        return replace(own, **given, **bound, **more)

    def choose(self, asked: TaskSettings, known: Callable[[Path], list[str]]) -> str | None:
        """The split to read; None is all of a single file."""
        if not asked.data or Path(asked.data).is_dir() or known(Path(asked.data)) != ["train"]:
            return self.split or "test"
        if self.data and self.split:
            raise ConfigError(
                f"{self.data} is a single file, which has no {self.split!r} in it; leave --split "
                "out to score all of it"
            )
        if not self.data and self.split not in ("train", "valid"):
            raise ConfigError(
                f"the run's data, {asked.data}, are a single file without {self.split or 'test'!r};"
                " score what was held out of it with --split valid, or name other --data"
            )
        return self.split or None

    def choose_images(self, asked: TaskSettings, known: Callable[[Path], list[str]]) -> str | None:
        """The split of images to read; None is all of other data that have no splits."""
        if asked.data and not self.split:
            there = known(Path(asked.data))
            if self.data and there == ["train"]:
                return None
            if not self.data and "test" not in there:
                raise ConfigError(
                    f"the run's data, {printable(asked.data)}, have no 'test'; score what was kept "
                    "for validation with --split valid, or name other --data"
                )
        return self.choose(asked, known)


OF_WRITING = ("most_tokens", "sample", "temperature", "seed")  # settings of a look, of some models
OF_DRAWS = ("temperature", "top_k", "top_p")


def given_of(fields: dict[str, Any], *names: str) -> list[str]:
    """Those of some decoding settings that are other than they are by default."""
    known = Decoding.__dataclass_fields__
    return [name for name in names if name in fields and fields[name] != known[name].default]


_KINDS: dict[type, tuple[type, str]] = {
    str: (str, "a text"),
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
}


def make_decoding(fields: dict[str, Any]) -> Decoding:
    """Check the names of decoding settings that came as keywords, and that they go together."""
    known = Decoding.__dataclass_fields__
    for name, value in fields.items():
        if name not in known:
            raise ConfigError(f"{name} is not a decoding setting; there are: {', '.join(known)}")
        kind, what = _KINDS[type(known[name].default)]
        if not isinstance(value, kind):
            raise ConfigError(f"{name}={value!r} must be {what}, as {known[name].default!r} is")
    how = Decoding(**fields)
    for name in () if how.sample else given_of(fields, *OF_DRAWS):
        raise ConfigError(
            f"{name}={fields[name]} is of words drawn at random, not of a search; add --sample "
            "(sample=True in Python)"
        )
    return how


def texts_given(given: object) -> list[str]:
    """A text or a list of texts, as `predict` takes them."""
    every: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    for text in every:
        if not isinstance(text, str):
            what = type(text).__name__
            raise DataError(f"give a text or a list of texts, not {what}; read or decode it first")
    return list(every)


def one_given(given: Any) -> Any:
    """What is looked at, which is one: a list is refused."""
    if isinstance(given, list | tuple):
        raise DataError(
            f"a look is at one, not at a {type(given).__name__}; look at each by itself"
        )
    return given


def text_given(given: object) -> str:
    """A text, as `look` takes it."""
    (text,) = texts_given(one_given(given))
    return text


def refuse_settings(settings: LookSettings, why: str, *names: str) -> None:
    """Refuse what would be left unused: settings that are other than they are by default."""
    for name in names:
        if vars(settings)[name] != LookSettings.__dataclass_fields__[name].default:
            raise ConfigError(f"{name}={vars(settings)[name]}: {why}; leave it out")


def check_zoom(models: Sequence[AnyModel], settings: LookSettings, out: Path | None) -> None:
    """Refuse heads that no page would show."""
    if settings.zoom and not is_page(out):
        raise ConfigError("--zoom is kept on a page; name it with --out x.html")
    for model in models:
        there = head_counts(model.network)
        for name, head in settings.zoom:
            if name not in there:
                known = ", ".join(there) or "none"
                raise ConfigError(f"{model.name} has no site {name!r}; there are: {known}")
            heads = there[name]
            if head >= heads:
                raise ConfigError(f"{name} has no head {head}; it has {heads}, counted from 0")


def load_alike(run: str, compare: str | None, device: str) -> list[Any]:
    """A run, and one to compare it with, which must do the same work."""
    from saccade.app.api import load

    models: list[AnyModel] = [load(one, device=device) for one in (run, compare) if one is not None]
    if len({type(model) for model in models}) > 1:
        names = " and ".join(model.name for model in models)
        raise ConfigError(f"{names} do different work; compare two of a kind")
    return models
