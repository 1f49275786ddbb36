"""Small captioners with fresh weights, and images to send them."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from PIL import Image
from torch import nn

from saccade.data import shapes
from saccade.data.shapes import ShapesSettings
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.caption.captioner import CaptionerConfig
from saccade.models.caption.show_and_tell import ShowAndTell, ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTell, ShowAttendTellConfig
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.app.serve.serving import Client
from tests.data.images_odd import stored

RNNS = (ShowAndTell, ShowAttendTell)
MODELS: dict[str, tuple[int, CaptionerConfig]] = {
    "captioner": (
        32,
        CaptionTransformerConfig(width=32, depth=1, encoder_depth=1, heads=4, hidden=64),
    ),
    "larger": (48, ShowAttendTellConfig(width=32, hidden=32)),
    "teller": (32, ShowAndTellConfig(width=32)),
}


def make_captioners(folder: Path) -> dict[str, Path]:
    """A run of each, in a folder of its name."""
    scenes = [shapes.scene("train", i, ShapesSettings()) for i in range(100)]
    texts = [text for scene in scenes for text in shapes.captions(scene)]
    vocabulary = Vocabulary.train(texts, level="words", size=500)
    for seed, (name, (side, model)) in enumerate(MODELS.items(), start=1):
        torch.manual_seed(seed)
        (folder / name).mkdir()
        task = CaptioningSettings(image=side, longest=12)
        model = replace(model, vocabulary=len(vocabulary))
        made = Recipe(
            about="", system="", lecture="", model=model, task=task, train=TrainSettings()
        )
        run = RunFolder(folder / name)
        run.save_recipe(made)
        run.save_assets(tokenizer_asset(vocabulary))
        run.save_weights(outspoken(model.build()))
    return {name: folder / name for name in MODELS}


def images(count: int) -> list[bytes]:
    """Four colours each, distinct, of different sizes and forms."""
    forms, made = ("PNG", "JPEG", "WEBP"), list[bytes]()
    for number in range(count):
        colours = np.random.default_rng(number).integers(0, 256, (2, 2, 3), dtype=np.uint8)
        large = colours.repeat(10 + number, axis=0).repeat(12 + number, axis=1)
        made.append(stored(Image.fromarray(large), forms[number % 3]))
    return made


def outspoken(model: nn.Module) -> nn.Module:
    """Fresh weights say much the same of all pictures; larger ones do not."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if (
                weight.dim() > 1
                and not name.startswith("image_encoder")
                and isinstance(model, RNNS)
            ):
                weight.mul_(4)
    return model


def upload(
    client: Client, *raw: bytes, path: str = "/v1/predict", fields: Mapping[str, str] | None = None
) -> httpx.Response:
    """As a form, as a browser does it."""
    files = [("image", ("x.png", one, "image/png")) for one in raw]
    return client.http.post(path, files=files, data=dict(fields or {}))


def as_json(
    client: Client, *raw: bytes, path: str = "/v1/predict", **fields: Any
) -> httpx.Response:
    coded = [base64.b64encode(one).decode() for one in raw]
    return client.post(path, {"image": coded if len(coded) > 1 else coded[0], **fields})


def texts(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["text"] for one in answer.json()["predictions"]]
