"""Few scenes to validate on, and no images kept beyond a test."""

from collections.abc import Iterator

import pytest

from saccade.tasks.joint import data as joint_data
from tests.tasks.joint.made import VALID


@pytest.fixture(scope="package", autouse=True)
def few_held_back(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_data, "HELD_BACK", VALID)
        patch.setenv("SACCADE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
