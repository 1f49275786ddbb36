"""Images are decoded in a process that is ended when it takes too long, and replaced."""

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from saccade.app.serve.image_decoder import ImageDecoder
from saccade.data.images.decode import decode
from saccade.data.images.pixels import ImageError
from tests.data.images_odd import broken, many_scans, odd

LIMITS = {"short": 64, "most": 25_000_000}


@pytest.fixture(scope="module")
def decoder() -> Iterator[ImageDecoder]:
    made = ImageDecoder()
    yield made
    made.end()


def process(decoder: ImageDecoder) -> psutil.Process:
    assert decoder._process is not None
    return psutil.Process(decoder._process.pid)


def test_it_decodes_as_the_library_does(decoder: ImageDecoder) -> None:
    for raw in odd().values():
        found = decoder.decode(raw, **LIMITS, seconds=10.0)
        assert np.array_equal(found, decode(raw, **LIMITS).numpy())
    first = process(decoder)
    for raw, begins in broken().values():
        with pytest.raises(ImageError) as caught:
            decoder.decode(raw, **LIMITS, seconds=10.0)
        assert caught.value.reason.startswith(begins)
    assert process(decoder) == first


def test_what_takes_too_long_is_ended_and_the_next_is_decoded(decoder: ImageDecoder) -> None:
    good, slow = odd()["progressive.jpg"], many_scans(4000, scans=40)
    decoder.decode(good, **LIMITS, seconds=10.0)
    first, begun = process(decoder), time.monotonic()
    with pytest.raises(TimeoutError):
        decoder.decode(slow, **LIMITS, seconds=0.05)
    assert time.monotonic() - begun < 1.5
    assert not first.is_running()
    assert decoder.decode(good, **LIMITS, seconds=10.0).shape[0] == 3


def test_an_image_that_brings_its_process_down_brings_nothing_else_down(
    decoder: ImageDecoder,
) -> None:
    decoder.begin()
    os.kill(process(decoder).pid, signal.SIGSEGV)
    with pytest.raises(ImageError, match="no decoder can read it"):
        decoder.decode(odd()["progressive.jpg"], **LIMITS, seconds=10.0)
    decoder.decode(odd()["progressive.jpg"], **LIMITS, seconds=10.0)


def test_nothing_is_left_of_it() -> None:
    decoder = ImageDecoder()
    decoder.begin()
    first = process(decoder)
    decoder.end()
    assert not first.is_running()
