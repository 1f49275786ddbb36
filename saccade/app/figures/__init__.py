"""The claims of the lectures, each measured by a file of its own."""

from saccade.app.figures import (
    c01_bottleneck,
    c02_alignment,
    c03_scaling,
    c04_order,
    c05_encodings,
    c06_linear,
    c07_leakage,
    c08_growth,
    c09_norms,
)
from saccade.app.figures.claim import LectureClaim

CLAIMS: dict[str, LectureClaim] = {
    "C1": c01_bottleneck.CLAIM,
    "C2": c02_alignment.CLAIM,
    "C3": c03_scaling.CLAIM,
    "C4": c04_order.CLAIM,
    "C5": c05_encodings.CLAIM,
    "C6": c06_linear.CLAIM,
    "C7": c07_leakage.CLAIM,
    "C8": c08_growth.CLAIM,
    "C9": c09_norms.CLAIM,
}
