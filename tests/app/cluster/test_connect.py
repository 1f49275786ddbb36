"""What is asked of Ray, and what is said where it is not there."""

import sys

import pytest

from saccade.app.cluster.connect import RaySettings, connected, ray_module
from saccade.errors import ConfigError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ray_workers": 0}, "ray_workers=0 must be at least 1"),
        ({"ray_workers": 3, "ray_most": 2}, "ray_most=2 is below ray_workers=3; give at least"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RaySettings(**wrong)  # type: ignore[arg-type]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"not installed: pip install 'saccade\[ray\]'"):
        ray_module()


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    pytest.importorskip("ray")
    with (
        pytest.raises(
            ConfigError, match=r"^ray_address=nonsense://1 cannot be reached: .*ray status"
        ),
        connected(RaySettings(ray=True, ray_address="nonsense://1")),
    ):
        pass
