"""How models of images and texts answer requests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.kinds.joint.model import pair_table
from saccade.app.kinds.joint.regions import given_regions
from saccade.app.look.images import LONGEST, SIDE, SeesImages, ShownImage
from saccade.app.look.joint.document import pair_document
from saccade.app.look.joint.subject import PairSubject
from saccade.app.look.settings import LookSettings
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import ServedJob, Steps
from saccade.errors import DataError
from saccade.tasks.joint.pairs import BEST, PairImage, PairTool, RegionBoxes

IN_FULL = 1 << 20  # pixels: as large as it came


@dataclass(frozen=True)
class ServedImage:
    """An image as the model is given it, its height and width as it came, and for people."""

    pixels: Tensor
    size: tuple[int, int]
    shown: ShownImage | None = None


@dataclass(frozen=True)
class ServedPair:
    """An image and a text about it; `regions` are what a request says of the image."""

    image: ServedImage
    text: str
    regions: RegionBoxes | None

    def sight(self, tool: PairTool) -> PairImage:
        """Made to fit; of the size that it came with, for it may have been decoded smaller."""
        image = tool.sight(self.image.pixels, self.regions, name="the image")
        return image._replace(size=self.image.size)


class JointServing(Serving):
    """Texts and images of several requests are read together."""

    takes = "image"
    pairs = True
    uses = frozenset(("n_best", "stream"))

    def __init__(self, does: str, *, chooses: bool = False) -> None:
        self.does = f"{does} and writes nothing"
        self._chooses = chooses  # whether a text is sentences with tabs between them

    def looks(self, model: nn.Module) -> bool:
        return True  # both streams always look at one another

    def classes(self, tool: PairTool, given: Any) -> Sequence[str]:
        return tool.names

    def check(self, run: str, tool: PairTool, given: ServedPair) -> int:
        try:
            tokens = tool.read_text(given.text).tokens
        except DataError as error:
            raise invalid(f"{run}: {error}", "text") from error
        if given.regions is None and tool.wants_boxes:
            raise invalid(
                f"{run} looks at boxes: send them as boxes, [[left, top, right, bottom], …] in "
                "pixels, such as a detector finds",
                "boxes",
            )
        if given.regions is not None and not tool.wants_boxes:
            raise invalid(f"{run} looks at the cells of a grid: leave boxes out", "boxes")
        return tokens

    def predict(self, tool: PairTool, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given: list[ServedPair] = [one for job in jobs for one in job.work.given]
        best = max(BEST, *(job.work.how.n_best for job in jobs))
        images = [one.sight(tool) for one in given]
        answers = tool.answers(images, [tool.read_text(one.text) for one in given], best=best)
        tables = iter(pair_table(answer, one.image.size) for answer, one in zip(answers, given))
        for job in jobs:
            job.finish([next(tables) for _ in job.work.given])

    def look(self, models: list[Any], given: ServedPair, settings: LookSettings) -> Any:
        assert given.image.shown is not None
        return pair_document(
            models, [PairSubject(given.image.shown, given.text, given.sight)], settings
        )

    def with_text(self, tool: PairTool, image: ServedImage, text: str, boxes: Any) -> ServedPair:
        if boxes is None:
            return ServedPair(image, text, None)
        try:
            return ServedPair(image, text, given_regions(boxes, image.size))
        except DataError as error:
            raise invalid(str(error), "boxes") from error

    def image_to_predict(self, tool: PairTool, decode: DecodeImage) -> ServedImage:
        whole, short = decode(IN_FULL), 2 * tool.settings.image
        height, width = whole.shape[1:]
        # A large JPEG is decoded once more, at the size at which `predict` reads it from a file.
        pixels = whole if min(height, width) < 2 * short else decode(short)
        return ServedImage(pixels, (height, width))

    def image_to_look_at(self, tools: list[PairTool], decode: DecodeImage) -> ServedImage:
        one = self.image_to_predict(tools[0], decode)
        squeezed = tools[0].settings.fit == "squeeze"
        pixels = decode(LONGEST if squeezed else 2 * SIDE)
        shown = (
            ShownImage.in_full(pixels, name="image")
            if squeezed
            else ShownImage.of(pixels, tools[0], name="image")
        )

        def seen_by(tool: SeesImages) -> Tensor:
            return tool.prepare(one.pixels)

        return replace(one, shown=replace(shown, seen_by=seen_by))

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image, "asks": True, "chooses": self._chooses}

    def about_tool(self, tool: PairTool) -> dict[str, Any]:
        return {"boxes": tool.wants_boxes}
