"""Attention by kernels: torch's own on any device, ours in Triton on NVIDIA GPUs."""

from importlib.util import find_spec

HAS_TRITON = find_spec("triton") is not None
