"""Models of words for other engines: CTranslate2, and ONNX."""

from dataclasses import asdict
from pathlib import Path
from typing import cast

from saccade.app.export import ctranslate2 as to_ctranslate2
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.readme import ctranslate2_readme, onnx_readme
from saccade.app.kinds.base import Exporter, LoadedRun
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.tokenizer import TOKENIZER
from saccade.train.recipe import Recipe


def _check_ctranslate2(recipe: Recipe) -> None:
    to_ctranslate2.check(recipe.model)


def _fill_ctranslate2(run: LoadedRun, folder: Path, quantization: str) -> str:
    vocabulary, how = Vocabulary.load(run.asset(TOKENIZER)), cast(Quantization, quantization)
    to_ctranslate2.write_ctranslate2(run.network, vocabulary, folder, how)
    translates = to_ctranslate2.check(run.recipe.model).translates
    return ctranslate2_readme(run.name, how, vocabulary, translates=translates)


def _check_onnx(recipe: Recipe) -> None:
    """Any that decodes; what cannot be traced is refused when it is."""


def _fill_onnx(run: LoadedRun, folder: Path, quantization: str) -> str:
    from saccade.app.export.onnx import write_onnx

    interface = write_onnx(run.network, folder, asdict(run.recipe.task))
    return onnx_readme(run.name, Vocabulary.load(run.asset(TOKENIZER)), *interface)


EXPORTS: dict[str, Exporter] = {
    "ctranslate2": Exporter(
        check=_check_ctranslate2,
        fill=_fill_ctranslate2,
        assets=(TOKENIZER,),
        packages=("ctranslate2",),
        quantizes=True,
    ),
    "onnx": Exporter(
        check=_check_onnx, fill=_fill_onnx, assets=(TOKENIZER,), packages=("onnx", "onnxscript")
    ),
}
