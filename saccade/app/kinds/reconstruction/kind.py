"""Reconstruction: images in, codes out, and the images again from these."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.app.api import load
from saccade.app.cli.inputs import say_written
from saccade.app.cli.options import ImageArguments, Output, RunArgument
from saccade.app.cli.output import busy, counting, print_json, print_scores
from saccade.app.kinds.base import HeldOut, Kind
from saccade.app.kinds.image_files import Fields, Row, check_images, predict_images
from saccade.app.kinds.reconstruction.model import ReconstructionModel, load_reconstructor
from saccade.app.kinds.reconstruction.serve import ReconstructionServing, codes_table
from saccade.app.look.draw.figure import save_by_ending
from saccade.app.look.draw.pairs import draw_pairs
from saccade.app.look.draw.png import png_bytes
from saccade.app.look.images import evenly
from saccade.data.readers.images.plain import plain_image_splits
from saccade.errors import ConfigError
from saccade.tasks.reconstruction.data import ReconstructionSettings, read_plain
from saccade.tasks.reconstruction.evaluate import evaluate_reconstruction
from saccade.tasks.reconstruction.reconstructor import Reconstructor

DRAWN = 64  # pairs that a drawing has room for
OF_SPLIT = 16  # pairs of a split that are drawn, evenly from all

Pair = tuple[Tensor, Tensor]


def predict_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    out: Output = None,
    codes: bool = False,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Tell images by codes, and draw what comes back of them.

    Images are files, folders of them, .tar and .zip archives, patterns in quotes ("*.jpg"), or -
    for an image or names of files on standard input. Each line has the file's name, a tab, and how
    near the codes come to the image, in decibels (PSNR); of one file only that. With --out the
    images and what their codes stand for are drawn side by side, the original to the left. What
    cannot be read is told on standard error and passed over; the exit code is then 1.

    Args:
        run: folder of the run.
        images: files, folders, archives and patterns.
        out: a .png file to draw them in; the first 64 are.
        codes: print the codes of each image row by row, in place of the decibels.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print codes and decibels as JSON.
    """
    check_images(images)
    _check_png(out)
    with busy("loading"):
        model: ReconstructionModel = load(run, device=device)
    pairs: list[Pair] = []

    def tell(prepared: list[Tensor]) -> list[Row]:
        if not prepared:
            return []
        found = model.tool.reconstruct(torch.stack(prepared))
        room = DRAWN - len(pairs) if out is not None else 0
        pairs.extend((given, one.pixels) for given, one in zip(prepared[:room], found))
        return [codes_table(one) for one in found]

    def lines(row: Row, alone: bool) -> Fields:
        return [(row["text"] if codes else f"{row['psnr']:.2f} dB",)]

    try:
        predict_images(model.tool, images, tell, doing="coding", json=json, fields=lines)
    finally:  # some could not be read: the others are drawn all the same
        _draw(pairs, out)


def _check_png(out: Path | None) -> None:
    if out is not None and out.suffix != ".png":
        raise ConfigError(f"{out.name}: pairs are drawn as .png, not {out.suffix or 'that'}")


def _draw(pairs: list[Pair], out: Path | None) -> None:
    if out is not None and pairs:
        say_written(save_by_ending(out, {".png": lambda: png_bytes(draw_pairs(pairs))}))


def eval_command(
    run: RunArgument,
    /,
    *,
    held_out: HeldOut = HeldOut(),  # noqa: B008
    draw: Path | None = None,
    device: str = "auto",
    json: bool = False,
) -> None:
    """Score a discrete VAE on images that it was not trained on.

    What each image loses when every cell is its likeliest code: the mean squared error of pixels
    from 0 to 1, and that in decibels (PSNR). How codes are used: as many as the perplexity says
    would be, were all used as often; dead ones are not used at all. The losses: laplace is per
    pixel, kl per cell, in nats.

    Args:
        run: folder of the run.
        held_out: which data to score on.
        draw: a .png file for some of the images beside what their codes stand for.
        device: cpu, cuda …; auto takes the fastest there is.
        json: print everything as JSON.
    """
    _check_png(draw)
    with busy("loading"):
        model: ReconstructionModel = load(run, device=device)
    asked = held_out.settings(model.tool.settings)
    split = held_out.choose_images(asked, plain_image_splits)
    where: dict[str, Any] = {"split": split, "settings": asked}
    with counting("reading") as reading, counting("coding") as progress:
        found = evaluate_reconstruction(model.tool, **where, reading=reading, progress=progress)
    held_out.kept(run, found)
    print_json(found) if json else print_scores(found)
    if draw is not None:
        _draw(_of_split(model.tool, asked, split), draw)


def _of_split(tool: Reconstructor, asked: ReconstructionSettings, split: str | None) -> list[Pair]:
    """Some images of a split, spread evenly over it, and what their codes stand for."""
    read = read_plain(asked, split)
    images = read.images[torch.tensor(evenly(len(read), OF_SPLIT))]
    return [(image, one.pixels) for image, one in zip(images, tool.reconstruct(images))]


def look_command(
    run: RunArgument,
    images: ImageArguments = (),
    /,
    *,
    out: Output = None,
) -> None:
    """Refused: a discrete VAE has no attention. `saccade predict` draws what comes of images.

    Args:
        run: folder of the run.
        images: files of images.
        out: where to.
    """
    shown = " ".join(images) or "photo.jpg"
    raise ConfigError(
        f"{run} is a discrete VAE, which has no attention to look at; see what its codes keep of "
        f"an image with `saccade predict {run} {shown} -o pairs.png`"
    )


KIND = Kind(
    name="reconstruction",
    load=load_reconstructor,
    predict=predict_command,
    evaluate=eval_command,
    look=look_command,
    serving=ReconstructionServing(),
)
