"""The lecture's world: a language with three sentences."""

import random

SENTENCES = (
    "I think therefore I am",
    "I like machine learning",
    "I am not just a neural network",
)


def sentences(count: int, *, seed: int = 0) -> list[str]:
    """Draw sentences of the world, each as likely as the others."""
    return random.Random(seed).choices(SENTENCES, k=count)
