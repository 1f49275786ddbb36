"""Either encoder of a CLIP as a classifier: of images by texts, and of texts by images."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.data.batching.rows import Rows
from saccade.models.joint.clip import Clip
from saccade.models.joint.contrast import scaled_cosines, unit
from saccade.models.text.text_encoder import place_read
from saccade.models.vision.image_encoder import ImageEncoder


class TextClasses(ImageEncoder):
    """The encoder of images, whose classes are texts.

        score(i, c) = τ x(c) · y(i)

    The texts are no parameters, and keep their precision whatever the encoder's becomes.
    """

    def __init__(self, clip: Clip, texts: Float[Tensor, "classes J"]) -> None:
        super().__init__()
        self.image_encoder, self.image_projection = clip.image_encoder, clip.image_projection
        self._texts, self._scale = texts.detach(), clip.scale.detach()

    @property
    def stages(self) -> int:
        return self.image_encoder.stages

    def channels(self, stage: int | None = None) -> int:
        return self.image_encoder.channels(stage)

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        return self.image_encoder.grid(image, stage)

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        grid, features = self.image_encoder.grid_and_scores(image, stage)
        return grid, self._scores(features)

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return self.image_encoder.cells(stage)

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self.image_encoder.pooled(image)

    def drop_after(self, stage: int) -> None:
        self.image_encoder.drop_after(stage)

    def layers_upwards(self) -> list[nn.Module]:
        return self.image_encoder.layers_upwards()

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self._scores(self.image_encoder(image))

    def _scores(self, features: Float[Tensor, "B C"]) -> Float[Tensor, "B classes"]:
        images = unit(self.image_projection(features))
        return scaled_cosines(self._texts, images, self._scale).mT


class ImageClasses(nn.Module):
    """The encoder of texts, whose labels are images; implements `ScoresTexts`.

    score(t, i) = τ x(t) · y(i)
    """

    packs, capturable = True, True

    def __init__(self, clip: Clip, images: Float[Tensor, "labels J"]) -> None:
        super().__init__()
        self.text_encoder = clip.text_encoder
        self._hidden, self._vectors, self.longest = clip.hidden, clip.text_vectors, clip.longest
        self._images, self._scale = images.detach(), clip.scale.detach()

    def forward(self, rows: Rows, types: Int[Tensor, " words"]) -> Float[Tensor, "words D"]:
        return self._hidden(rows)

    def scores(self, hidden: Float[Tensor, "words D"], rows: Rows) -> Float[Tensor, "n labels"]:
        return scaled_cosines(self._vectors(hidden, rows), self._images, self._scale)

    def read_at(self, tokens: int, /) -> int | None:
        """At which of so many tokens a text is read."""
        return place_read("last", tokens)
