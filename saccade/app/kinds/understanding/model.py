"""A model that understands texts, in Python: what is true of them, and what that came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from saccade.app.kinds.base import LoadedRun, TrainedModel
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.look.draw.figure import MatrixLook
from saccade.app.look.settings import LookSettings, make_selection
from saccade.app.look.understanding.matrix import understanding_look
from saccade.errors import ConfigError, DataError, RunError
from saccade.printable import printable
from saccade.tasks.base import Progress, silent
from saccade.tasks.guesses import Guess
from saccade.tasks.understanding.classifier import BEST, PAIR, TextAnswer, TextClassifier, Texts
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.labels import ASSET, Labels, read_labels_asset

Given = str | tuple[str, str]  # a text, or a pair


@dataclass(frozen=True)
class TextPrediction:
    """What is said of a text or a pair: its classes and the best guesses, a number, or tags."""

    answer: TextAnswer
    _model: "UnderstandingModel"

    @property
    def text(self) -> str:
        """In short: the classes, the number, or the tags with blanks between them."""
        return self.answer.text

    @property
    def labels(self) -> list[str]:
        """The class, those of several that are likely there, or a tag for each word."""
        return list(self.answer.said)

    @property
    def guesses(self) -> list[Guess]:
        """The best classes, the likeliest first."""
        return list(self.answer.guesses)

    @property
    def number(self) -> float | None:
        return self.answer.number

    @property
    def words(self) -> list[str]:
        """What has a tag of its own."""
        return list(self.answer.words)

    @property
    def score(self) -> float | None:
        """The probability of the best guess, or the number."""
        return self.guesses[0].probability if self.guesses else self.number

    def look(self, *, of: str | None = None, **select: Any) -> MatrixLook:
        """What in the text the decision came from, or another one, `of`; see `Selection`."""
        return self._model.look(self.answer.texts, of=of, **select)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TextPrediction({self.text!r})"


class UnderstandingModel(TrainedModel[TextClassifier]):
    """A trained model that understands texts."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of classes, labels or tags, in the order of their scores."""
        return self.tool.labels.names

    @overload
    def predict(self, text: Given, *, best: int = ...) -> TextPrediction: ...
    @overload
    def predict(
        self, text: list[Any], *, best: int = ..., progress: Progress = ...
    ) -> list[TextPrediction]: ...
    def predict(
        self, text: Any, *, best: int = BEST, progress: Progress = silent
    ) -> TextPrediction | list[TextPrediction]:
        """Say what is true of a text, or of each of a list; a pair is a tuple of two texts."""
        if best < 1:
            raise ConfigError(f"best={best} must be at least 1")
        given = [self._texts(one) for one in (text if isinstance(text, list) else [text])]
        answers = self.tool.answers(given, best=best, progress=progress)
        found = [TextPrediction(one, self) for one in answers]
        return found if isinstance(text, list) else found[0]

    def look(
        self,
        text: str | Sequence[str],
        settings: LookSettings | None = None,
        *,
        of: str | None = None,
        flow: bool = False,
        **select: Any,
    ) -> MatrixLook:
        """What is true of a text or a pair, and what in it that came from; see `Selection`."""
        how = settings or LookSettings(of=of)
        return understanding_look(self, self._texts(text), how, make_selection(select), flow=flow)

    def _texts(self, given: object) -> Texts:
        every = (given,) if isinstance(given, str) else given
        if not isinstance(every, tuple) or not all(isinstance(one, str) for one in every):
            what = type(given).__name__
            raise DataError(f"give a text, or a pair as a tuple of two, not {what}; a list of them")
        return self.tool.parted(PAIR.join(every)) if len(every) == 1 else self.tool.checked(every)


def load_understanding(run: LoadedRun) -> UnderstandingModel:
    settings = run.recipe.task
    assert isinstance(settings, UnderstandingSettings)
    tool = TextClassifier(run.network, load_vocabulary(run), labels_of(run), settings)
    return UnderstandingModel(run.name, run.recipe, tool)


def labels_of(run: LoadedRun) -> Labels:
    """The labels that a run has kept; refuses those of another."""
    path = run.asset(ASSET)
    try:
        labels = read_labels_asset(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{printable(path)} does not say what the run tells of texts ({printable(error)}); "
            "copy the run again as a whole"
        ) from None
    wanted = vars(run.recipe.model)["labels"]
    if labels.width != wanted:
        raise RunError(
            f"{printable(path)} has {labels.width:,} labels, and the model tells {wanted:,} apart: "
            "it belongs to another run; copy the run again as a whole"
        )
    return labels
