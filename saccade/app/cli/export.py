"""`saccade export RUN --to ctranslate2|onnx|huggingface|timm`: for engines and libraries."""

from pathlib import Path

from saccade.app.cli.options import Output, RunArgument
from saccade.app.cli.output import busy, print_json, say, tell
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.make import Target, export_run
from saccade.train.storage.folder import RunFolder


def export_command(
    run: RunArgument,
    /,
    *,
    to: Target,
    out: Output = None,
    quantization: Quantization = "float32",
    json: bool = False,
) -> None:
    """Write a trained model in the format of another engine or library, in a folder that needs no
    Saccade.

    Of models of words: ctranslate2 is a fast engine for Transformer and GPT models on CPUs and
    GPUs; `saccade predict --engine ctranslate2` uses it from here. onnx writes encoder.onnx and
    decoder.onnx, one step of decoding with its memory going in and out, for any model and any
    runtime of that format. Of Transformer, GPT and BERT models and of classifiers: huggingface is a
    folder for transformers' from_pretrained. Of classifiers of images: timm is one for
    timm.create_model, and onnx a graph from images to scores. The folder holds the tokenizer or the
    names of the classes, and a README that says what goes in and what comes out.

    Args:
        run: folder of the run.
        to: ctranslate2, onnx, huggingface or timm.
        out: where to; by default exports/ in the run. An export that is there is replaced.
        quantization: how ctranslate2 stores weights; int8 takes a quarter of float32.
        json: print what was written as JSON.
    """
    with busy(f"exporting to {to}"):
        folder, written = export_run(RunFolder(Path(run)), to, out=out, quantization=quantization)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    if json:
        print_json({"folder": str(folder), "written": written, "bytes": files})
        return
    if not written:
        say("already there, made of these weights")
    tell(str(folder))
    for name, size in files.items():
        say(f"{size:>14,}  {name}")
