"""`saccade predict runs/transformer "we are eating bread"`: use a trained model."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tyro

from saccade.app.api import CaptioningModel, Engine, LanguageModel, TranslationModel, load
from saccade.app.cli.output import busy, counting, print_json
from saccade.app.cli.predict_images import describe_images
from saccade.app.export.ctranslate2 import Quantization
from saccade.data.readers import read_texts
from saccade.decode.engine import Decoding
from saccade.errors import DataError


def predict_command(
    run: tyro.conf.Positional[str],
    text: tyro.conf.Positional[tuple[str, ...]] = (),
    /,
    *,
    decoding: Decoding = Decoding(beam=5),  # noqa: B008
    count: int = 1,
    most_tokens: int = 100,
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
    device: str = "auto",
    json: bool = False,
) -> None:
    """Translate sentences, go on writing from prompts, or say what is on images.

    Text comes from the command line, from a file that is named there, or, with none or with -,
    from standard input, a sentence a line. Translations come out in the same order, one a line.

    Images are files, folders of them, or .tar and .zip archives. One file gives its caption;
    otherwise each line has the file's name, a tab, and the caption. What cannot be read is told on
    standard error and passed over; the exit code is then 1.

    With --engine ctranslate2 that engine decodes (pip install 'saccade[export]'): the run is
    exported into its own folder when it is first used, and again when its weights have changed.

    Args:
        run: folder of the run.
        text: sentences, prompts, or a file of them; for a captioner the images.
        decoding: how the next word is chosen.
        count: how many texts a language model writes for each prompt.
        most_tokens: where a language model stops at the latest.
        engine: who decodes: saccade, or ctranslate2 for Transformer and GPT runs.
        engine_precision: how ctranslate2 holds the weights; int8 is fastest on CPUs.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print scores as well, as JSON.
    """
    with busy("loading"):
        model = load(run, device=device, engine=engine, engine_precision=engine_precision)
    if isinstance(model, LanguageModel):
        _write(model, list(_texts(text)) if text else [""], decoding, count, most_tokens, json)
    elif isinstance(model, CaptioningModel):
        describe_images(model, text, decoding, json)
    else:
        _translate(model, list(_texts(text or ("-",))), decoding, json)


def _translate(model: TranslationModel, texts: list[str], how: Decoding, json: bool) -> None:
    with counting("translating") as progress:
        predictions = model.predict(texts, progress=progress, **vars(how))
    if json:
        print_json([_as_table(prediction) for prediction in predictions])
        return
    for prediction in predictions:
        for one in (prediction, *prediction.others):
            print(one.text)


def _as_table(prediction: Any) -> dict[str, Any]:
    table = {"source": prediction.source, "text": prediction.text, "score": prediction.score}
    others = [{"text": other.text, "score": other.score} for other in prediction.others]
    return {**table, "others": others} if others else table


def _write(
    model: LanguageModel,
    prompts: list[str],
    how: Decoding,
    count: int,
    most_tokens: int,
    json: bool,
) -> None:
    # A language model is sampled unless a search was asked for.
    fields = {**vars(how), "sample": how.sample or how.beam == 5}
    written = [
        one
        for prompt in prompts
        for one in model.predict(prompt, count=count, most_tokens=most_tokens, **fields)
    ]
    if json:
        print_json([{k: v for k, v in vars(one).items() if k != "tokens"} for one in written])
    else:
        for one in written:
            print(one.text)


def _texts(given: tuple[str, ...]) -> Iterator[str]:
    for text in given:
        if text == "-":
            yield from _standard_input()
        elif len(text) < 256 and Path(text).is_file():
            yield from read_texts(Path(text), "train").texts
        else:
            yield text


def _standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input:{number}: not UTF-8 ({error.reason})") from error
        if not text.strip():
            raise DataError(f"standard input:{number}: empty line")
        yield text
