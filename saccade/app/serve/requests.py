"""From the bytes of a request to what it asks for: fields checked, images decoded.

Small JSON without an image is read where it comes in. Everything else is read by one thread for
the whole server, one request after another: it waits in a line like any work, so it can be
refused, given up and timed like it, and there is never more than one image being decoded, in a
process that is ended when it takes too long.
"""

import base64
import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saccade.app.kinds.base import Takes
from saccade.app.serve.batcher import Job
from saccade.app.serve.http.errors import RequestError, invalid
from saccade.app.serve.http.multipart import form_value, read_form
from saccade.app.serve.http.strict_json import read_json
from saccade.app.serve.image_decoder import ImageDecoder
from saccade.app.serve.runs import ServedRun, run_named
from saccade.app.serve.schema import LookRequest, PredictRequest, check
from saccade.app.serve.settings import ServeSettings
from saccade.data.images.decode import ImageError

READER = "/reader"  # the name of the line: no folder can be called so
FORM = "multipart/form-data"
A: dict[Takes, str] = {"text": "a text", "image": "an image"}
REPEATED = ("image", "text")  # fields of a form that several parts make a list of
AS_TEXT = ("run", "compare", "text", "of")  # fields of a form that are not written as in JSON


@dataclass(frozen=True)
class ReadRequest:
    """A request that can be read, and whom it is for. `given` are its texts or its images.

    An image to predict from is made to fit its run; one to look at comes as people see it, too.
    """

    wanted: Any
    run: ServedRun
    given: tuple[Any, ...]
    compare: ServedRun | None = None


@dataclass(frozen=True)
class RequestBody:
    """The body of a request, yet to be read."""

    body: bytes
    content_type: str
    schema: type[PredictRequest] | type[LookRequest]
    runs: Mapping[str, ServedRun]
    settings: ServeSettings = field(repr=False)
    decoder: ImageDecoder

    def at_once(self) -> ReadRequest | None:
        """The request, if reading it is nothing to speak of."""
        if self._is_form or len(self.body) > self.settings.body_bytes:
            return None
        asked = self._asked(self._checked())
        return None if asked.wanted.image is not None else asked

    def __call__(self) -> ReadRequest:
        """The request with its images."""
        asked = self._asked(self._checked())
        images = raw_images(asked.wanted.image)
        if not images:
            return asked
        runs = [asked.run] if asked.compare is None else [asked.run, asked.compare]
        looks = isinstance(asked.wanted, LookRequest)
        pixels = _Pixels(self.decoder, self.settings)
        given = tuple(_image(partial(pixels.decode, raw), runs, looks=looks) for raw in images)
        if asked.run.serving.pairs:
            given = _pairs(asked.run, given, asked.given, asked.wanted.boxes)
        return ReadRequest(asked.wanted, asked.run, given, asked.compare)

    @property
    def _is_form(self) -> bool:
        return self.content_type.split(";")[0].strip().lower() == FORM

    def _checked(self) -> PredictRequest | LookRequest:
        if self._is_form:
            value = self._form()
        else:
            _refuse_litter(self.body, self.settings.body_bytes)
            value = read_json(self.body)
        return check(self.schema, value, self.settings)

    def _form(self) -> dict[str, Any]:
        known = self.schema.model_fields
        most = len(REPEATED) * self.settings.batch + len(known)
        parts = read_form(self.body, self.content_type, most=most)
        value: dict[str, Any] = {}
        for name, contents in parts.items():
            if name not in known:
                value[name] = None  # which the schema refuses with the names that there are
            elif len(contents) > 1 and name not in REPEATED:
                raise RequestError(400, "bad_form", f"{name!r} is given twice", field=name)
            else:
                each = [_part(one, name) for one in contents]
                value[name] = each if len(each) > 1 else each[0]
        return value

    def _asked(self, wanted: PredictRequest | LookRequest) -> ReadRequest:
        run, compare = run_named(self.runs, wanted.run), None
        if isinstance(wanted, LookRequest) and wanted.compare is not None:
            compare = run_named(self.runs, wanted.compare, "compare")
        self._check_given(run, wanted)
        if compare is not None and compare.serving is not run.serving:
            raise invalid(f"{run.name} and {compare.name} do different work", "compare")
        texts = [wanted.text] if isinstance(wanted.text, str) else wanted.text
        return ReadRequest(wanted, run, tuple(texts or ()), compare)

    def _check_given(self, run: ServedRun, wanted: PredictRequest | LookRequest) -> None:
        """Refuse what a run does not take, and what lacks something that it does."""
        takes, pairs = run.serving.takes, run.serving.pairs
        needed: tuple[Takes, ...] = ("image", "text") if pairs else (takes,)
        other: Takes = "image" if takes == "text" else "text"
        if other not in needed and wanted.given(other) is not None:
            raise invalid(f"{run.name} takes {A[takes]}, and no {other}", other)
        for name in needed:
            if wanted.given(name) is None:
                rule = self.schema.model_fields[name].description
                raise invalid(f"{name} is missing; it must be {rule}", name)
        if wanted.boxes is not None and not pairs:
            raise invalid(f"{run.name} takes no boxes: leave them out", "boxes")


def _part(contents: bytes, name: str) -> Any:
    return contents if name == "image" else form_value(contents, name, plain=name in AS_TEXT)


def _pairs(
    run: ServedRun, images: tuple[Any, ...], texts: tuple[str, ...], boxes: Any
) -> tuple[Any, ...]:
    """Images and texts, as many of both, or one with all of the others."""
    count = max(len(images), len(texts))
    if len(images) != len(texts) and min(len(images), len(texts)) != 1:
        raise invalid(
            f"{len(images)} images and {len(texts)} texts: send as many of both, or one of either",
            "text",
        )
    if boxes is not None and len(images) > 1:
        raise invalid("boxes are of one image: send one at a time", "boxes")
    return tuple(
        run.serving.with_text(run.tool, images[min(n, len(images) - 1)], text, boxes)
        for n, text in ((n, texts[min(n, len(texts) - 1)]) for n in range(count))
    )


class _Pixels:
    """How many pixels and how much time there are left for the images of one request."""

    def __init__(self, decoder: ImageDecoder, settings: ServeSettings) -> None:
        self._decoder, self._settings = decoder, settings
        self._left = settings.request_pixels
        self._ends = time.monotonic() + settings.image_s

    def decode(self, raw: bytes, short: int) -> Tensor:
        settings, seconds = self._settings, max(0.01, self._ends - time.monotonic())
        most = max(1, min(settings.image_pixels, self._left))
        try:
            pixels = self._decoder.decode(raw, short=short, most=most, seconds=seconds)
        except ImageError as error:
            why = error.reason
            if most < settings.image_pixels and why.startswith("too large"):
                all_of_them = f"{settings.request_pixels:,} pixels (request_pixels)"
                why = f"too large: the images of a request may have {all_of_them}; send fewer"
            raise invalid(why, "image") from error
        except TimeoutError as error:
            limit = f"{settings.image_s:g} s (image_s)"
            why = f"too slow: the images took over {limit} to decode; make them smaller"
            raise invalid(why, "image") from error
        self._left -= pixels[0].size
        return torch.from_numpy(pixels)


def _image(decode: Callable[[int], Tensor], runs: list[ServedRun], *, looks: bool) -> Any:
    serving, tools = runs[0].serving, [run.tool for run in runs]
    if looks:
        return serving.image_to_look_at(tools, decode)
    return serving.image_to_predict(tools[0], decode)


def read_jobs(jobs: Sequence[Job], beat: Callable[[], None]) -> None:
    """What the reading thread does."""
    for job in jobs:
        beat()
        if not job.gone:
            job.finish(job.work())


def raw_images(given: str | bytes | Sequence[str | bytes] | None) -> list[bytes]:
    """The bytes of each image of a request."""
    if given is None:
        return []
    many = [given] if isinstance(given, str | bytes) else given
    return [one if isinstance(one, bytes) else _from_base64(one) for one in many]


def _from_base64(text: str) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"image is not base64: {error}", "image") from error


def _refuse_litter(body: bytes, most: int) -> None:
    """A body may be long for its images only: megabytes of brackets take seconds to read."""
    if len(body) > most and sum(map(body.count, (b",", b":", b"[", b"{"))) > most:
        raise RequestError(413, "too_large", f"a body of over {most} bytes must be mostly image")
