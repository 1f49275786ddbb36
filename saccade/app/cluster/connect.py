"""A Ray cluster to work on: one that is there, or one of this machine's processes for a while.

Ray is an extra: pip install 'saccade[ray]'. What it prints is its own affair and is left out.
"""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from importlib import import_module
from io import StringIO
from typing import Any

from saccade.errors import ConfigError

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_SERVE_LOG_TO_STDERR": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DATA_LOG_LEVEL": "CRITICAL",
}


@dataclass(frozen=True, kw_only=True)
class RaySettings:
    """Whether and how Ray does the work (pip install 'saccade[ray]').

    Args:
        ray: let processes of a Ray cluster do it.
        ray_workers: how many of them; of a server, replicas.
        ray_most: replicas that a busy server may grow to; 0: no more than there are.
        ray_address: the cluster's address; without it one is started on this machine, and ends
            with the command.
    """

    ray: bool = False
    ray_workers: int = 2
    ray_most: int = 0
    ray_address: str = ""

    def __post_init__(self) -> None:
        if self.ray_workers < 1:
            raise ConfigError(f"ray_workers={self.ray_workers} must be at least 1")
        if self.ray_most and self.ray_most < self.ray_workers:
            raise ConfigError(
                f"ray_most={self.ray_most} is below ray_workers={self.ray_workers}; give at least "
                "as many, or 0"
            )
        if not self.ray and replace(self, ray=True) != RaySettings(ray=True):
            raise ConfigError("--ray-workers, --ray-most and --ray-address are of --ray; add it")


def ray_module(name: str = "ray") -> Any:
    """Ray, or a part of it."""
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"--ray needs {error.name or 'ray'}, which is not installed: pip install 'saccade[ray]'"
        ) from error


@contextmanager
def connected(settings: RaySettings) -> Generator[Any, None, None]:
    """Ray, connected to its cluster; one that was started here ends with the block."""
    ray = ray_module()
    local: dict[str, Any] = {
        "num_cpus": max(os.cpu_count() or 1, settings.ray_most, settings.ray_workers) + 1,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
    }
    how = {"address": settings.ray_address} if settings.ray_address else local
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        with redirect_stderr(StringIO()):
            ray.init(**how, **quiet, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        where = f"ray_address={settings.ray_address}" if settings.ray_address else "a Ray cluster"
        raise ConfigError(f"{where} cannot be reached: {reason}; look at `ray status`") from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()
