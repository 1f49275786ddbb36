"""Which of several sentences fits an image, as of the rows of VCR (Zellers et al. 2019,
arXiv:1811.10830).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data import shapes
from saccade.data.readers.images.asked.forms import CHOICES
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task, silent
from saccade.tasks.joint.asked import read_about_images
from saccade.tasks.joint.batch import JointBatch, Sees, blinded, seen_regions
from saccade.tasks.joint.data import JointSettings, drawn_scenes
from saccade.tasks.joint.task import JointLearning, TextsOfImages

NONE = -1  # where a row has fewer sentences than others


@dataclass(frozen=True, kw_only=True)
class ChoosingSettings(JointSettings):
    """Which sentences to choose from about which images. Without `data`: shapes, and four of each.

    Args:
        data: .jsonl with image, sentences and right: a folder, a file, a .zip or .tar.
        sees: to learn what can be guessed: from the sentences alone (`question`), or from the image
            alone.
    """

    example: ClassVar[str] = 'photo.jpg --text "a dog runs" --text "a dog sleeps"'
    budget_unit: ClassVar[str] = "choices"
    decides: ClassVar[Mapping[str, Any]] = {"head": "fit", "contrast": False}
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", *decides})

    sees: Sees = "both"

    def prepare(self, how: Preparation) -> Task[Any]:
        return Choosing(self, how)


class Offered(NamedTuple):
    """A row: sentences, and the number of the right one, from 0."""

    texts: tuple[str, ...]
    right: int


def read_choices(
    settings: ChoosingSettings, split: str | None, progress: Progress
) -> TextsOfImages:
    """A split of the user's choices, or of those about shapes; None is all of a single file.

    What is true of a sentence is its row.
    """
    if settings.data:
        read = read_about_images(settings, split, CHOICES, progress)
        truth = [Offered(said.item.texts, said.item.right) for said in read.truth]
        return read._replace(truth=truth, sizes=[len(one.texts) for one in rows_of(truth)])
    sighted = drawn_scenes(settings, split or "test", progress)
    offered = [[Offered(*one) for one in shapes.choices(scene)] for scene in sighted.scenes]
    texts = [tuple(text for one in some for text in one.texts) for some in offered]
    every = [one for some in offered for one in some]
    sizes = [len(one.texts) for one in every]
    return TextsOfImages(sighted, texts, [one for one in every for _ in one.texts], sizes)


def rows_of(truth: Sequence[Offered]) -> list[Offered]:
    """The rows of sentences, all of which are there; `truth` has the row of each."""
    rows, place = list[Offered](), 0
    while place < len(truth):
        rows.append(truth[place])
        place += len(truth[place].texts)
    return rows


class Choosing(JointLearning):
    """Implements `Task[JointBatch]`."""

    deciding = Deciding("accuracy", label="accuracy", higher=True)
    what = "choices"

    def __init__(self, settings: ChoosingSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_choices(self.settings, split, progress)

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        return with_rows(batch, [truth[text] for text in texts.tolist()])

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """−log p(right), p = softmax over the sentences of a row, averaged over the rows."""
        z = choice_scores(model, self.varied(batch), self.settings.sees)
        return {"choice": F.cross_entropy(z, batch.asked["right"]) * batch.tokens}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        right = loss = 0.0
        rows = 0
        with torch.no_grad():
            for batch in self.validation(device, progress):
                true = batch.asked["right"]
                z = choice_scores(model, batch, self.settings.sees)
                right += float((z.argmax(dim=1) == true).sum())
                loss += float(F.cross_entropy(z, true, reduction="sum"))
                rows += len(true)
        return {"accuracy": right / rows, "loss": loss / rows}


def with_rows(batch: JointBatch, truth: Sequence[Offered]) -> JointBatch:
    """A batch that knows which of its texts are a row (`which`), and which is right; `truth` has
    the row of each text. It counts rows.
    """
    rows = rows_of(truth)
    sizes = torch.tensor([len(one.texts) for one in rows])
    places = torch.arange(int(sizes.max())).expand(len(rows), -1)
    numbers = (sizes.cumsum(0) - sizes)[:, None] + places
    asked = {
        "which": numbers.where(places < sizes[:, None], NONE),
        "right": torch.tensor([one.right for one in rows]),
    }
    return batch._replace(asked=asked, tokens=len(rows) if batch.tokens else 0)


def choice_scores(model: Vilbert, batch: JointBatch, sees: Sees) -> Float[Tensor, "rows most"]:
    """How well each sentence of each row fits, from what the model may see; −∞ where there is none.

    Sentences lie end to end while they are read: only their scores stand in rows.
    """
    text, regions = blinded(batch.text, seen_regions(model, batch.seen), sees)
    z = model.fits(model(text, batch.types, regions, batch.of)).float()
    return in_rows(z, batch.asked["which"])


def in_rows(z: Float[Tensor, " T"], which: Int[Tensor, "rows most"]) -> Float[Tensor, "rows most"]:
    """Scores row by row, by the numbers of the texts."""
    each = z.index_select(0, which.clamp_min(0).flatten()).view_as(which)
    return each.masked_fill(which == NONE, -torch.inf)
