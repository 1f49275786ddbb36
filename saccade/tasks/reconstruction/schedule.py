"""How the weight of the KL and the temperature of the draws change while training.

Both are functions of the micro-batch's number, so that nothing is to be saved or lost.
"""

import math

from saccade.tasks.reconstruction.data import ReconstructionSettings


def beta_at(position: int, settings: ReconstructionSettings) -> float:
    """β · min(1, position / beta_batches)"""
    return settings.beta * _progress(position, settings.beta_batches)


def temperature_at(position: int, settings: ReconstructionSettings) -> float:
    """τ + (1 − τ) ½ (1 + cos(π · progress)),  progress = min(1, position / cool_batches)"""
    fallen = (1 - math.cos(math.pi * _progress(position, settings.cool_batches))) / 2
    return 1 - (1 - settings.temperature) * fallen


def _progress(position: int, batches: int) -> float:
    return min(1.0, position / batches) if batches else 1.0
