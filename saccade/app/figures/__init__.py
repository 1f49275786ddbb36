"""The claims of the lectures, each measured by a file of its own."""

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.claims import (
    c01_bottleneck,
    c02_alignment,
    c03_scaling,
    c04_order,
    c05_encodings,
    c06_linear,
    c07_leakage,
    c08_growth,
    c09_norms,
    c10_hard,
    c11_compute,
    c12_small_data,
    c13_pretraining,
    c14_reasons,
)

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
    "C10": c10_hard.CLAIM,
    "C11": c11_compute.CLAIM,
    "C12": c12_small_data.CLAIM,
    "C13": c13_pretraining.CLAIM,
    "C14": c14_reasons.CLAIM,
}
