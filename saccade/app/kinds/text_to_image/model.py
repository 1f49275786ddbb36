"""A trained text-to-image model in Python: prompts in, images out, and where each cell looked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image
from torch import Tensor

from saccade.app.kinds.base import LoadedRun, TrainedModel, text_given, texts_given
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.look.draw.figure import write
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.images import pillow_image
from saccade.app.look.settings import LookSettings, make_selection
from saccade.app.look.text_to_image import DrawnFilm, DrawnSubject, drawn_look
from saccade.data.images.given import AnyImage
from saccade.decode.protocol import OnStep
from saccade.errors import ConfigError, RunError
from saccade.models.image_tokens.dvae import Dvae
from saccade.printable import printable
from saccade.tasks.base import Progress, silent
from saccade.tasks.reconstruction.asset import ASSET, read_dvae_asset
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.tasks.text_to_image.drawer import Drawing, Drawn, ImageDrawer


@runtime_checkable
class ImageTextMatcher(Protocol):
    """What tells how well images fit a text: a tool of whatever kind."""

    def similarity(self, images: UInt8[Tensor, "n 3 H W"], text: str) -> Float[Tensor, " n"]: ...


@dataclass(frozen=True)
class ImagePrediction:
    """An image that was drawn for a prompt: its pixels, its codes, row by row, and how probable
    these are; `similarity` is how well it fits the prompt, where somebody was asked.
    """

    prompt: str
    pixels: UInt8[Tensor, "3 H W"]
    codes: list[int]
    log_probability: float
    similarity: float | None
    begun: int
    _model: "TextToImageModel"

    @property
    def image(self) -> Image.Image:
        """For Pillow."""
        return pillow_image(self.pixels)

    @property
    def score(self) -> float:
        """By which the best of several are first: the similarity, else log p of a code, on average
        over those that were drawn.
        """
        if self.similarity is not None:
            return self.similarity
        return self.log_probability / (len(self.codes) - self.begun)

    def save(self, path: str | Path) -> Path:
        """As PNG, with as many pixels as were drawn."""
        path = Path(path)
        if path.suffix != ".png":
            raise ConfigError(f"{path.name}: an image is written as .png; name such a file")
        return write(path, self._repr_png_())

    @property
    def subject(self) -> DrawnSubject:
        """What there is to look at."""
        return DrawnSubject(self.prompt, self.pixels, self.codes, self.log_probability, self.begun)

    def look(self, **select: Any) -> DrawnFilm:
        """Which cells looked at each word of the prompt; `select` has fields of `Selection`."""
        return drawn_look(self._model, self.subject, LookSettings(), make_selection(select))

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return png_bytes(self.image)

    def __repr__(self) -> str:
        return f"ImagePrediction({self.prompt!r}, score={self.score:.4g})"


class TextToImageModel(TrainedModel[ImageDrawer]):
    """A trained text-to-image model."""

    def predict(
        self,
        prompt: str | list[str],
        *,
        count: int = 1,
        complete: AnyImage | None = None,
        rows: int | None = None,
        rerank: Any = None,
        best: int | None = None,
        progress: Progress = silent,
        on_step: OnStep | None = None,
        **drawing: Any,
    ) -> list[ImagePrediction]:
        """Draw `count` images for a prompt; of a list of prompts, for each in turn.

        With `complete` the upper `rows` rows of cells of that image are kept, and the rest is
        drawn. With `rerank`, a model that tells how well images fit a text, each prompt's best come
        first, and only the `best` are given. `drawing` has fields of `Drawing`, such as
        temperature=0.8. What is drawn for a prompt does not depend on other prompts, nor on how
        many are drawn.
        """
        how, prompts = make_drawing(drawing), texts_given(prompt)
        check_count(count, best, reranked=rerank is not None)
        tool, judge = self.tool, None if rerank is None else matcher_of(rerank)
        for one in prompts:
            tool.read(one)  # refuses what cannot be drawn, before anything is
        begun = self.begin(complete, rows)
        drawn = tool.draw(
            [one for one in prompts for _ in range(count)],
            how,
            begun=begun,
            streams=[*range(count)] * len(prompts),
            on_step=on_step,
            progress=progress,
        )
        known = 0 if begun is None else len(begun)
        return [
            found
            for number, one in enumerate(prompts)
            for found in self._of_prompt(one, drawn[number * count :][:count], known, judge)[:best]
        ]

    def begin(self, complete: AnyImage | None, rows: int | None) -> Int[Tensor, " codes"] | None:
        """The codes of an image's upper rows of cells, half of all where nobody says how many."""
        if complete is None:
            if rows is not None:
                raise ConfigError(f"rows={rows} are those of an image to complete; give that too")
            return None
        half = max(1, self.tool.model.config.grid // 2)
        return self.tool.upper_part(self.tool.prepare(complete), half if rows is None else rows)

    def look(self, prompt: str, *, select: dict[str, Any] | None = None, **how: Any) -> DrawnFilm:
        """Draw an image and show which cells looked at each word; `how` are those of `predict`,
        and `select` has fields of `Selection`.
        """
        return self.predict(text_given(prompt), **how)[0].look(**(select or {}))

    def _of_prompt(
        self, prompt: str, drawn: Sequence[Drawn], begun: int, judge: ImageTextMatcher | None
    ) -> list[ImagePrediction]:
        pixels = self.tool.images(drawn)
        found = [
            ImagePrediction(prompt, one, codes, log_probability, None, begun, self)
            for one, (codes, log_probability) in zip(pixels, drawn)
        ]
        if judge is None:
            return found
        fits = judge.similarity(pixels, prompt).tolist()
        judged = [replace(one, similarity=fit) for one, fit in zip(found, fits)]
        return sorted(judged, key=lambda one: -one.score)


def check_count(count: int, best: int | None, *, reranked: bool) -> None:
    """Refuse what is no number of images, and what would change nothing."""
    if count < 1:
        raise ConfigError(f"count={count} must be at least 1")
    if reranked and count == 1:
        raise ConfigError("rerank puts the best of several images first; draw more, as --count 16")
    if best is not None and not reranked:
        raise ConfigError(f"best={best}: nobody says which are; name a run with --rerank, too")
    if best is not None and not 1 <= best <= count:
        raise ConfigError(f"best={best} must be from 1 to count={count}")


def make_drawing(fields: dict[str, Any]) -> Drawing:
    """Check the names of settings that came as keywords."""
    known = Drawing.__dataclass_fields__
    for name in fields:
        if name not in known:
            raise ConfigError(f"{name} does not say how to draw; there are: {', '.join(known)}")
    return Drawing(**fields)


def matcher_of(model: Any) -> ImageTextMatcher:
    """What tells how well images fit a text, of a model that `saccade.load` gives."""
    tool = model.tool
    if not isinstance(tool, ImageTextMatcher):
        raise ConfigError(
            f"{model.name} does not say how well an image fits a text; rerank by a run that does, "
            "such as `saccade train clip` makes"
        )
    return tool


def load_drawer(run: LoadedRun) -> TextToImageModel:
    settings = run.recipe.task
    assert isinstance(settings, TextToImageSettings)
    tool = ImageDrawer(run.network, _kept_dvae(run), load_vocabulary(run), settings)
    return TextToImageModel(run.name, run.recipe, tool)


def _kept_dvae(run: LoadedRun) -> Dvae:
    """The discrete VAE that a run has kept; refuses that of another run."""
    path, again = run.asset(ASSET), "copy the run again as a whole"
    try:
        dvae = read_dvae_asset(path.read_bytes())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunError(
            f"{printable(path)} is not the discrete VAE of the run ({printable(why)}); {again}"
        ) from None
    model = vars(run.recipe.model)
    side = vars(run.recipe.task)["image"]
    config, wanted = dvae.config, {"codes": model["codes"], "grid": model["grid"], "image": side}
    sizes = {"codes": config.codes, "grid": config.grid, "image": config.image}
    for name, value in wanted.items():
        if (found := sizes[name]) != value:
            raise RunError(
                f"{printable(path)} has {name}={found}, and the model {name}={value}: it belongs "
                f"to another run; {again}"
            )
    for name, weights in dvae.state_dict().items():
        if not torch.isfinite(weights).all():
            raise RunError(f"{printable(path)}: {name} holds values that are not finite; {again}")
    return dvae
