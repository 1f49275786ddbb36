"""How well a text-to-image model knows texts and images that it has not learnt from."""

from collections.abc import Iterator
from typing import Any

import torch

from saccade.tasks.base import Progress, silent
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.figures import loss_figures
from saccade.tasks.text_to_image.drawer import ImageDrawer
from saccade.tasks.text_to_image.task import (
    FRAME,
    CodedTexts,
    TextImageBatch,
    coded_texts,
    mean_losses,
    validation_batches,
    without_words,
)


def coded_split(
    drawer: ImageDrawer, read: Captioned, progress: Progress = silent
) -> tuple[CodedTexts, int]:
    """The images of a split as codes with their texts, and how many texts are too long."""
    most = drawer.model.config.text - FRAME
    return coded_texts(
        read,
        drawer.vocabulary,
        drawer.dvae,
        most=most,
        none_fits=f"none of the texts has at most {most} tokens, and more are not read",
        progress=progress,
    )


@torch.inference_mode()
def evaluate_drawer(
    drawer: ImageDrawer, read: Captioned, *, coding: Progress = silent, progress: Progress = silent
) -> dict[str, Any]:
    """Loss per word and per code, every image with its first text.

    `without_text` is the loss per code where the text is hidden: how much less it is with the text
    is what the text tells of the image.
    """
    data, too_long = coded_split(drawer, read, coding)
    vocabulary, text = drawer.vocabulary, drawer.model.config.text
    count = 2 * len(data.codes)

    def batches(*, hidden: bool) -> Iterator[TextImageBatch]:
        done = len(data.codes) if hidden else 0
        for batch in validation_batches(data, vocabulary, text):
            which = torch.full((len(batch.words),), hidden)
            yield without_words(batch, which, vocabulary)
            done += batch.tokens
            progress(done, count)

    found = mean_losses(drawer.model, batches(hidden=False), drawer.device)
    hidden = mean_losses(drawer.model, batches(hidden=True), drawer.device)
    share = drawer.settings.text_weight
    return {
        "images": len(data.codes),
        "left_out": too_long,
        "loss": share * found["words"] + (1 - share) * found["codes"],
        "per_word": loss_figures(found["words"]),
        "per_code": {**loss_figures(found["codes"]), "without_text": hidden["codes"]},
    }
