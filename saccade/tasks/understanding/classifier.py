"""Using a model that understands: the class of a text or a pair, a number, labels, or tags."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import word_spans
from saccade.errors import DataError
from saccade.models.protocol import ScoresTexts
from saccade.tasks.base import Progress, silent
from saccade.tasks.guesses import Guess, best_guesses, probabilities, said_classes
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.encode import EncodedTexts
from saccade.tasks.understanding.figures import said_tags
from saccade.tasks.understanding.labels import Labels
from saccade.tasks.understanding.scores import text_scores

BEST = 5  # guesses
PAIR = "\t"  # stands between the two texts of a pair

Texts = tuple[str, ...]


@dataclass(frozen=True)
class TextAnswer:
    """What is said of a text or a pair: its classes, a number, or a tag for each word.

    `guesses` are the best classes; of tags those of each word. `cut` says that it was too long.
    """

    texts: Texts
    said: tuple[str, ...] = ()
    guesses: tuple[Guess, ...] = ()
    number: float | None = None
    words: tuple[str, ...] = ()
    word_guesses: tuple[tuple[Guess, ...], ...] = ()
    cut: bool = False

    @property
    def text(self) -> str:
        """In short: the classes, the number, or the tags with blanks between them."""
        if self.number is not None:
            return f"{self.number:.4g}"
        return " ".join(tag or "–" for tag in self.said) if self.words else ", ".join(self.said)


class TextClassifier:
    """A model, its tokenizer, and what it tells."""

    def __init__(
        self,
        model: nn.Module,
        vocabulary: Vocabulary,
        labels: Labels,
        settings: UnderstandingSettings,
    ) -> None:
        self.model, self.vocabulary, self.labels = model.eval(), vocabulary, labels
        self.settings = settings
        self.device = next(model.parameters()).device

    @property
    def network(self) -> ScoresTexts:
        assert isinstance(self.model, ScoresTexts)
        return self.model

    @property
    def longest(self) -> int:
        """How many tokens are read of a text."""
        most = self.network.longest
        return self.settings.longest if most is None else min(most, self.settings.longest)

    def parted(self, line: str) -> Texts:
        """One text, or two with a tab between them, whichever the model reads."""
        parts = tuple(line.split(PAIR)) if self.labels.pairs else (line,)
        return self.checked(parts)

    def checked(self, texts: Texts) -> Texts:
        """Refuse what is no text, or no pair, as the model wants it."""
        if self.labels.pairs and len(texts) != 2:
            raise DataError(
                f"{len(texts)} text{'s' * (len(texts) != 1)} where a pair is read; give two with "
                "a tab between them"
            )
        if not self.labels.pairs and len(texts) != 1:
            raise DataError(f"{len(texts)} texts where one is read; give them one by one")
        return texts

    def words_of(self, texts: Texts) -> list[str]:
        """What gets a tag of its own; none where nothing does."""
        if self.labels.kind != "tags":
            return []
        return [texts[0][start:end] for start, end in word_spans(texts[0])]

    @torch.inference_mode()
    def scored(
        self, texts: Sequence[Texts], progress: Progress = silent
    ) -> tuple[list[Float[Tensor, "... C"]], frozenset[int]]:
        """Scores of each text, or of each of its words, and which texts were too long. No text
        depends on another.
        """
        words = [self.words_of(one) for one in texts]
        encoded = EncodedTexts.of(self.vocabulary, texts, words, longest=self.longest)
        found = text_scores(self.network, encoded, self.labels, self.device, progress)
        return found, encoded.cut

    def answers(
        self, texts: Sequence[Texts], *, best: int = BEST, progress: Progress = silent
    ) -> list[TextAnswer]:
        """What is said of each."""
        every = [self.checked(one) for one in texts]
        found, cut = self.scored(every, progress)
        return [
            self.answer(one, scores, best=best, cut=place in cut)
            for place, (one, scores) in enumerate(zip(every, found))
        ]

    def answer(
        self, texts: Texts, scores: Float[Tensor, "... C"], *, best: int, cut: bool
    ) -> TextAnswer:
        """What some scores say."""
        labels, names = self.labels, self.labels.names
        if labels.kind == "number":
            return TextAnswer(texts, number=labels.as_number(float(scores[0])), cut=cut)
        if labels.kind == "tags":
            words, each = tuple(self.words_of(texts)), probabilities(scores, several=False)
            guesses = tuple(tuple(best_guesses(names, one.nan_to_num(), best)) for one in each)
            said = said_tags(labels, scores)
            return TextAnswer(texts, said, words=words, word_guesses=guesses, cut=cut)
        (chances,) = probabilities(scores[None], several=labels.several)
        said = said_classes(names, chances, several=labels.several)
        return TextAnswer(texts, tuple(said), tuple(best_guesses(names, chances, best)), cut=cut)
