"""CTranslate2, the engine for Transformers on a CPU, with our own weights exported to it."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch

from saccade.app.export.ctranslate2 import write_ctranslate2
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.text.transformer import Transformer

NEEDS = "ctranslate2"


class CTranslator:
    """A translator of words; it adds the END of a source itself."""

    def __init__(
        self, model: Transformer, vocabulary: Vocabulary, precision: Literal["float32", "int8"]
    ) -> None:
        engine: Any = import_module(NEEDS)
        with TemporaryDirectory() as folder:
            write_ctranslate2(model, vocabulary, Path(folder), precision)
            self.engine = engine.Translator(
                folder,
                device="cpu",
                compute_type=precision,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )

    def translate(self, sources: list[list[str]], *, beam: int, steps: int) -> list[list[str]]:
        """The best translation of each, all in one batch."""
        found = self.engine.translate_batch(
            sources, beam_size=beam, max_decoding_length=steps, max_batch_size=0
        )
        return [one.hypotheses[0] for one in found]
