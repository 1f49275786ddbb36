"""Every test runs with the shapes and types of saccade checked, and without chance."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

from tests.shape_checks import check_calls

MOST = 20.0  # seconds of computing, on however slow and busy a machine

# All of saccade but the readers and lingua, which have no tensors and would be ten times slower.
WITH_TENSORS = "app attention blocks config decode metrics models tasks train"
DATA = "batching images shapes.drawing tokens.vocabulary"
names = [*WITH_TENSORS.split(), *(f"data.{name}" for name in DATA.split())]
# A checked module hides from Triton's compiler what its kernels name, so a GPU goes without.
if not torch.cuda.is_available():
    check_calls([f"saccade.{name}" for name in names])
    # These hold protocols, which have no bodies to check, and beartype cannot read their `Self`.
    install_import_hook(["saccade.tasks.base", "saccade.decode.protocol"], None)
torch.set_num_threads(1)  # sums in one order, and two cores are shared with the processes we start,
os.environ["OMP_NUM_THREADS"] = "1"  # which compute with one as well, however busy others are
settings.register_profile("saccade", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("fast", settings.get_profile("saccade"), max_examples=12)
gc.disable()  # while everything is imported: none of that is garbage


def fast(config: pytest.Config) -> bool:
    """Whether these are the fast tests alone, of which each must be cheap."""
    return config.option.markexpr == "not slow"


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs behind it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("fast" if fast(config) else "saccade")


def pytest_collection_finish() -> None:
    gc.freeze()  # none of that is garbage, and need not be looked through again
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Time on the clock would depend on what else runs: this is that of the processor."""
    before = sum(os.times()[:4])  # of the processes that it started and waited for as well
    yield
    seconds = sum(os.times()[:4]) - before
    if seconds > MOST and fast(item.config):
        pytest.fail(f"it computes for {seconds:.1f} s: make it cheaper, or mark it slow")
