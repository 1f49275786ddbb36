"""Every test runs with the shapes and types of saccade checked, and without chance."""

import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# All of saccade but the readers and lingua, which have no tensors and would be ten times slower.
WITH_TENSORS = "app attention blocks config decode metrics models tasks train"
DATA = "batches images mixed ragged rows shapes.drawing vocabulary"
names = [*WITH_TENSORS.split(), *(f"data.{name}" for name in DATA.split())]
# A checked module hides from Triton's compiler what its kernels name, so a GPU goes without.
if not torch.cuda.is_available():
    install_import_hook([f"saccade.{name}" for name in names], "beartype.beartype")
    # These hold protocols, which have no bodies to check, and beartype cannot read their `Self`.
    install_import_hook(["saccade.tasks.base", "saccade.decode.protocol"], None)
torch.set_num_threads(1)  # sums in one order, and two cores are shared with the processes we start
settings.register_profile("saccade", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("saccade")
