"""Using a trained CLIP: how alike texts and images are, which of some texts fits, which image."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.square import fit_square
from saccade.data.tokens.reading import Reading
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.joint.clip import Clip
from saccade.models.joint.zero_shot import ImageClasses, TextClasses
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.data import Classes, ClassificationSettings
from saccade.tasks.joint.read_texts import read_text, reading_rows
from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.understanding.classifier import TextClassifier
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.labels import Labels

BATCH, GPU_BATCH = 64, 512  # images at a time
TEXTS = 256  # texts at a time


class MatchingTool:
    """A model, its tokenizer, and how images are made to fit."""

    def __init__(
        self, model: nn.Module, vocabulary: Vocabulary, settings: MatchingSettings
    ) -> None:
        assert isinstance(model, Clip)
        self.model, self.vocabulary, self.settings = model.eval(), vocabulary, settings
        self.device = next(model.parameters()).device

    @property
    def batch(self) -> int:
        """How many images are looked at together."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 side side"]:
        """An image upright and square, just as those that were learnt from.

        `name` is for messages, where the image has none of its own.
        """
        side = self.settings.image
        return fit_square(pixels_of(image, name=name, short=2 * side), side, self.settings.fit)

    def reading(self, text: str) -> Reading:
        """A text as tokens; what is empty or too long is refused."""
        return read_text(self.vocabulary, text, self.model.longest)

    def unknown(self, text: str) -> bool:
        """Whether it has a word that the tokenizer does not know."""
        return self.vocabulary.special.unknown in self.reading(text).tokens

    @torch.no_grad()
    def text_vectors(self, texts: Sequence[str]) -> Float[Tensor, "T J"]:
        """Of length one; no text depends on another."""
        read = [self.reading(text) for text in texts]
        parts = [read[first : first + TEXTS] for first in range(0, len(read), TEXTS)]
        return torch.cat([self.model.texts(reading_rows(some, self.device)[0]) for some in parts])

    @torch.no_grad()
    def image_vectors(self, images: UInt8[Tensor, "n 3 H W"]) -> Float[Tensor, "n J"]:
        """Of length one, of images of any size; no image depends on another."""
        side = self.settings.image
        if images.shape[2:] != (side, side):
            fit = self.settings.fit
            images = torch.stack([fit_square(one, side, fit) for one in images.cpu()])
        parts = [self.model.images(some.to(self.device)) for some in images.split(self.batch)]
        return torch.cat(parts)

    def similarity(self, images: UInt8[Tensor, "n 3 H W"], text: str) -> Float[Tensor, " n"]:
        """cos(x(text), y(image)) of each image; the most alike is the best for the text."""
        return (self.image_vectors(images) @ self.text_vectors([text])[0]).float().cpu()

    def classifier(
        self, texts: Sequence[str], names: tuple[str, ...] | None = None
    ) -> ImageClassifier:
        """Images told apart by texts, which are the classes or stand for classes of such names.

        p(c ∣ i) = softmax over c of τ x(c) · y(i)
        """
        model = TextClasses(self.model, self.text_vectors(texts))
        return ImageClassifier(model, Classes(names or tuple(texts)), self.class_settings())

    def class_settings(self, data: str = "", skip_bad: int = 0) -> ClassificationSettings:
        """How images with classes are read for this model."""
        own = self.settings
        return ClassificationSettings(
            data=data, image=own.image, fit=own.fit, skip_bad=skip_bad, shapes=own.shapes
        )

    def reader(
        self, images: UInt8[Tensor, "n 3 side side"], names: tuple[str, ...]
    ) -> TextClassifier:
        """Texts told apart by images: which of these a text is about.

        p(i ∣ t) = softmax over i of τ x(t) · y(i)
        """
        model = ImageClasses(self.model, self.image_vectors(images))
        settings = UnderstandingSettings(longest=self.model.config.longest)
        return TextClassifier(model, self.vocabulary, Labels("classes", names), settings)
