"""Few scenes to validate on, and no images kept beyond a test."""

from tests.tasks.joint.conftest import few_held_back

__all__ = ["few_held_back"]
