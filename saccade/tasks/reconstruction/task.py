"""Reconstruction: images are told by codes, and made again from them."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.config import ModelConfig
from saccade.metrics.reconstruction import code_use, psnr, squared_error
from saccade.models.image_tokens.dvae import Dvae
from saccade.models.image_tokens.pixels import map_pixels
from saccade.tasks.base import Deciding, Preparation, Progress, silent
from saccade.tasks.epochs import equal_batches
from saccade.tasks.images import augmentation, digest, varied
from saccade.tasks.reconstruction.data import PlainImages, ReconstructionSettings, read_both
from saccade.tasks.reconstruction.losses import (
    diversity_loss,
    gumbel_softmax,
    kl_to_uniform,
    laplace_loss,
)
from saccade.tasks.reconstruction.schedule import beta_at, temperature_at

VALIDATED = 64  # images at a time

RATIO = Deciding("psnr", label="PSNR in dB", higher=True)


class ReconstructionBatch(NamedTuple):
    """Images, and how each varies; τ and β as tensors, for a captured update reads them anew.

    `counts` is 1 for an image that counts, and 0 for one that is there so that a process has any.
    """

    images: UInt8[Tensor, "B 3 H W"]
    drawn: Float[Tensor, "B draws"]
    counts: Float[Tensor, " B"]
    temperature: Float[Tensor, ""]
    beta: Float[Tensor, ""]
    tokens: int

    @property
    def shape(self) -> Hashable:
        return tuple(self.images.shape)

    def to(self, device: torch.device) -> "ReconstructionBatch":
        return self._each(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> "ReconstructionBatch":
        return self._each(lambda x: x.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> "ReconstructionBatch":
        return ReconstructionBatch(
            move(self.images),
            move(self.drawn),
            move(self.counts),
            move(self.temperature),
            move(self.beta),
            self.tokens,
        )


class Reconstruction:
    """Implements `Task[ReconstructionBatch]`. An epoch sees every image once, in any order."""

    deciding: Deciding = RATIO

    def __init__(self, settings: ReconstructionSettings, how: Preparation) -> None:
        self.settings, self.seed = settings, how.seed
        self._train, self._valid = read_both(settings, how.progress)
        self.report = [f"train: {self._train.report}", f"valid: {self._valid.report}"]
        self.padding = 0.0
        self._vary = augmentation(settings.augment, settings.image)
        self._order = equal_batches(len(self._train), how.budget, seed=how.seed)
        self.batches_per_epoch = len(self._order)

    @property
    def sizes(self) -> str:
        return f"images of {self.settings.image} × {self.settings.image} pixels"

    def assets(self) -> dict[str, bytes]:
        return {}

    def fit(self, model: ModelConfig) -> ModelConfig:
        return self.settings.fit_model(model)

    def fingerprint(self) -> str:
        return f"{digest(self._train.images)} {digest(self._valid.images)}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> ReconstructionBatch:
        rows, counts, epoch = self._order.at(position, shard, shards)
        return ReconstructionBatch(
            self._train.images[rows],
            self._vary.draw(rows, seed=self.seed, epoch=epoch),
            torch.full((len(rows),), float(counts)),
            torch.tensor(temperature_at(position, self.settings)),
            torch.tensor(beta_at(position, self.settings)),
            len(rows) if counts else 0,
        )

    def losses(self, model: Dvae, batch: ReconstructionBatch) -> dict[str, Float[Tensor, ""]]:
        """The evidence lower bound, with draws of codes that gradients pass through.

        laplace:  −ln L(x | decoder(z)), a mean over pixels       z = gumbel_softmax(logits, τ)
        kl:       β Σ over cells of KL(q ‖ uniform), by as many pixels
        diversity: ω Σ over cells of KL(q̄ ‖ uniform), by as many; q̄ is the mean over what this
            process has of the batch
        """
        images = varied(self._vary, batch.images, batch.drawn)
        logits = model.encode(images)
        found = model.distribution(gumbel_softmax(logits, batch.temperature))
        laplace = laplace_loss(map_pixels(images, found.mean.dtype), found)
        kl = kl_to_uniform(logits) * (batch.beta / images[0].numel())
        counts = batch.counts.to(laplace)
        losses = {"laplace": (laplace * counts).sum(), "kl": (kl * counts).sum()}
        if self.settings.diversity:
            weight = self.settings.diversity * logits[0, 0].numel() / images[0].numel()
            losses["diversity"] = weight * counts.sum() * diversity_loss(logits, counts)
        return losses

    def validate(
        self, model: Dvae, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        return reconstruction_figures(model, self._valid, device, progress)


@torch.no_grad()
def reconstruction_figures(
    model: Dvae, read: PlainImages, device: torch.device, progress: Progress = silent
) -> dict[str, float]:
    """What is left of images once each cell is its likeliest code, and how codes are used.

    `laplace` is per pixel, of those codes; `kl` is per cell, not weighed by β.
    """
    sums: dict[str, float] = {"mse": 0.0, "laplace": 0.0, "kl": 0.0}
    codes: list[Tensor] = []
    side = model.config.grid
    for rows in torch.arange(len(read)).split(VALIDATED):
        images = read.images[rows].to(device)
        logits = model.encode(images)
        chosen = logits.argmax(dim=1)  # (B, h, w)
        found = model.decoder.of_codes(chosen)
        mapped = map_pixels(images, found.mean.dtype)
        sums["mse"] += squared_error(images, found.image()).sum().item()
        sums["laplace"] += laplace_loss(mapped, found).sum().item()
        sums["kl"] += kl_to_uniform(logits).sum().item() / side**2
        codes.append(chosen.flatten(1).cpu())
        progress(int(rows[-1]) + 1, len(read))
    means = {name: total / len(read) for name, total in sums.items()}
    use = code_use(torch.cat(codes), model.config.codes)
    return {
        "psnr": psnr(means["mse"]),
        **means,
        "perplexity": use.perplexity,
        "dead": float(use.dead),
    }
