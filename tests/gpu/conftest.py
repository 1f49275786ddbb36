"""What runs on a GPU is tested on a GPU. Where there is none these tests say so and are skipped."""

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_report_header() -> str:
    if not torch.cuda.is_available():
        return "gpu: none here, so tests/gpu is skipped; see `make test-gpu`"
    return f"gpu: {torch.cuda.get_device_name()}, torch {torch.__version__}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="there is no NVIDIA GPU here")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def empty_memory() -> object:
    """Captured graphs of one test should not starve the next."""
    yield
    torch.cuda.empty_cache()
