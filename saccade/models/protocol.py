"""What tasks, trainer and decoder may ask of a model; each model offers what it can."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.blocks.inference.affine import Precision
from saccade.blocks.output import OutputLayer
from saccade.data.batching.rows import Rows


@runtime_checkable
class WordNetwork(Protocol):
    """It ends in an output layer over words."""

    @property
    def output(self) -> OutputLayer:
        """Hidden states → logits of the next word."""
        ...

    def step(self, tokens: Int[Tensor, " R"], state: Any, /) -> tuple[Float[Tensor, "R V"], Any]:
        """Decode one word further."""
        ...


@runtime_checkable
class TranslationNetwork(WordNetwork, Protocol):
    """Source and target in, the hidden state at each target word out."""

    @property
    def longest(self) -> int | None:
        """How many words a sentence may have; None: any number."""
        ...

    def __call__(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        target: Int[Tensor, "B T"],
        /,
    ) -> Float[Tensor, "B T D"]: ...

    def start(self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"], /) -> Any:
        """Read the source once; nothing decoded yet."""
        ...


@runtime_checkable
class LanguageNetwork(WordNetwork, Protocol):
    """Text in, the hidden state at each word out."""

    @property
    def reach(self) -> int | None:
        """How many words back it can see; None: without end."""
        ...

    def __call__(self, tokens: Int[Tensor, "B T"], /) -> Float[Tensor, "B T D"]: ...

    def start(self, rows: int, /) -> Any:
        """Nothing read yet."""
        ...

    def read(self, tokens: Int[Tensor, "R T"], state: Any, /) -> tuple[Tensor, Any]:
        """Go on from a state by many words."""
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """Texts end to end in, the hidden state at each token out; none sees another text."""

    @property
    def longest(self) -> int | None:
        """How many tokens a text may have; None: any number."""
        ...

    @property
    def packs(self) -> bool: ...

    @property
    def capturable(self) -> bool: ...

    def __call__(self, rows: Rows, types: Int[Tensor, " words"], /) -> Float[Tensor, "words D"]:
        """`types` says of each token which of two texts it is of: 0 or 1."""
        ...


@runtime_checkable
class FillsWords(TextEncoder, Protocol):
    """It tells which word stands where one is hidden: `output(transformed(hidden))`."""

    @property
    def output(self) -> OutputLayer: ...

    def transformed(self, hidden: Float[Tensor, "n D"], /) -> Float[Tensor, "n E"]:
        """Hidden states, made ready for the output layer."""
        ...

    def follows(self, hidden: Float[Tensor, "words D"], rows: Rows, /) -> Float[Tensor, "B 2"]:
        """Logits of: the second text follows the first (0), or is any other (1); only where
        `config.next_sentence` asks for it.
        """
        ...


@runtime_checkable
class ScoresTexts(TextEncoder, Protocol):
    """It gives texts, or their tokens, logits of labels."""

    def scores(self, hidden: Float[Tensor, "words D"], rows: Rows, /) -> Float[Tensor, "n labels"]:
        """For every sequence of `rows`, also those that only fill its shape; or for every token."""
        ...


@runtime_checkable
class ReadsElsewhere(Protocol):
    """It reads what it says of a text at another token than the first."""

    def read_at(self, tokens: int, /) -> int | None:
        """At which of so many; None: from the mean of all."""
        ...


@runtime_checkable
class KnowsPublishedNames(Protocol):
    """Its tensors have names in files of others that follow from what it was built as."""

    def published_names(self, given: Collection[str], /) -> Mapping[str, str]:
        """Our names to those of a file that holds the given ones."""
        ...


@runtime_checkable
class ReplacesWords(ScoresTexts, Protocol):
    """It scores which words are not the author's; a part of it fills hidden ones."""

    @property
    def generator(self) -> FillsWords: ...


@runtime_checkable
class Packable(Protocol):
    """Sequences may lie end to end, so that no padding is computed."""

    @property
    def packs(self) -> bool: ...

    def packed(self, *rows: Any) -> Float[Tensor, "words D"]:
        """What the model gives for the same sequences side by side."""
        ...


@runtime_checkable
class Capturable(Protocol):
    """Whether batches of equal shape take equal kernels, so that an update can be captured."""

    @property
    def capturable(self) -> bool: ...


@runtime_checkable
class HasDecodingForm(Protocol):
    """A form of the same model that only decodes: packed weights, a precision of choice."""

    def for_decoding(self, precision: Precision, /) -> Any:
        """None where this model, or this precision, has none."""
        ...


@runtime_checkable
class ShowsAttention(Protocol):
    """Of a config: whether its model shows where it looks while it is trained."""

    @property
    def shows_attention(self) -> bool: ...


@runtime_checkable
class HasEncoderRate(Protocol):
    """A part of it, mostly one that others have trained, learns at a rate of its own."""

    @property
    def slow_part(self) -> nn.Module: ...


@runtime_checkable
class StartsFromPublished(HasEncoderRate, Protocol):
    """That part may start from weights that others have published."""

    @property
    def published(self) -> Path | None:
        """The file of them; None where the config names none."""
        ...


@runtime_checkable
class HasLayers(Protocol):
    """Blocks one above another, of which the lower may learn more slowly."""

    def layers_upwards(self) -> list[nn.Module]:
        """From what is next to the input to what is next to the output."""
        ...


@runtime_checkable
class CalledSeparately(Protocol):
    """A part that is called by itself where it is told to be, and may recompute what it gave."""

    separate: bool
    recompute: bool
