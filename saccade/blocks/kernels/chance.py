"""Which elements a dropout keeps, computed where it is needed and never stored."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201

import torch
import triton
import triton.language as tl
from jaxtyping import Int
from torch import Tensor

from saccade.blocks.dropout import dropped_chances, kept_scale


def draw_seed(device: torch.device) -> Int[Tensor, " 2"]:
    """Two random words that decide a whole mask; drawn on the device, so a replay draws anew."""
    return torch.randint(-(1 << 31), 1 << 31, (2,), dtype=torch.int32, device=device)


def chances(rate: float) -> tuple[int, float]:
    """How many of an element's chances drop it, and what the others are multiplied by."""
    return dropped_chances(rate), kept_scale(rate)


@triton.jit
def kept(seed, index, dropped, scale):
    """Zero for a share of the elements, `scale` for the others.

    A hash of the element's number between two random words: every bit of either changes half of
    the result's (the finaliser of MurmurHash3, and half of it again).
    """
    first, second = tl.load(seed).to(tl.uint32), tl.load(seed + 1).to(tl.uint32)
    h = index.to(tl.uint32) ^ first
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    h = (h ^ (h >> 16)) + second
    h = (h ^ (h >> 15)) * 0x7FEB352D
    return tl.where((h >> 16).to(tl.int32) >= dropped, scale, 0.0)
