"""How to train: everything that is neither the model nor the data."""

from dataclasses import dataclass, replace
from typing import Literal

from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.train.optimizers.schedule import ScheduleKind


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How to train.

    Args:
        steps: updates of the weights in all; fewer where `epochs` are over sooner.
        epochs: end after so many passes over the data; 0: only `steps` ends.
        batch_tokens: tokens of a micro-batch, source and target and padding counted; where there
            are images, words of their captions on average.
        batches: of sentences of similar length, or all of one shape with every length mixed: that
            one is compiled and captured once, so a GPU need not wait for Python.
        accumulate: micro-batches to one update.
        optimizer: AdamW; Muon for the matrices inside: an update costs a little more, and on
            shapes half of them do; or LAMB, for large batches.
        learning_rate: its highest value.
        encoder_rate: the share of it that the weights of an image encoder get.
        layer_decay: each block below the last learns at this share of the rate of the one above
            it, for weights that others have trained; 1 is off.
        freeze: so many blocks from below stay as they are, with what lies beneath them, where a run
            starts from weights; more than there are leave the head alone to learn.
        lora: rank of the two thin matrices that learn beside each of queries and values, while all
            else but the head stays as it is (LoRA); 0 is off.
        lora_alpha: their product counts so much, divided by the rank.
        schedule: how it falls after the warm-up.
        warmup: updates over which it rises to its highest value.
        warmup_share: of all updates, instead of that number; 0: the number.
        beta2: the optimizer's memory of squared gradients.
        weight_decay: pull of the weights (not of biases, norms and embeddings) towards zero.
        clip: longest gradient allowed; 0 allows any.
        ema: decay of the running average of the weights that is validated and kept; 0 is off.
        validate_every: updates between two validations; 0: one after each epoch.
        patience: validations without improvement before stopping early; 0 never does.
        save_every: updates between two checkpoints; 0 saves only after each validation.
        keep: checkpoints kept; an old one is deleted only after a newer one is safe.
        log_every: updates between two lines of metrics.jsonl.
        seed: decides the fresh weights, the order of the data and every dropout; below 2³².
        device: cpu, cuda, mps …; auto takes the fastest there is.
        precision: of the arithmetic; bfloat16 keeps the weights in float32.
        compile: hand the model to torch.compile: slow to start, faster after.
        checkpoint_activations: of this share of the blocks keep the input alone and compute the
            rest again for the gradient: less memory, at 1 a third more work, the same numbers.
        shard: over how many processes weights, gradients and optimizer are split (FSDP2), each of
            which then holds a part; more processes are replicas of these; 0: over all.
        capture: on a GPU, capture the step of a shape that returns and replay it.
        deterministic: on a GPU, add in one order, so that a run that was stopped goes on to the
            very same numbers; some kernels are a little slower for it.
        bad_loss: when a loss or gradient is not finite: stop, or skip that update (50 at most).
        tensorboard: write TensorBoard's files beside metrics.jsonl.
    """

    steps: int = 4000
    epochs: float = 0.0
    batch_tokens: int = 4096
    batches: Literal["similar", "mixed"] = "similar"
    accumulate: int = 1
    optimizer: Literal["adamw", "muon", "lamb"] = "adamw"
    learning_rate: float = 1e-3
    encoder_rate: float = 1.0
    layer_decay: float = 1.0
    freeze: int = 0
    lora: int = 0
    lora_alpha: float = 16.0
    schedule: ScheduleKind = "inverse-sqrt"
    warmup: int = 400
    warmup_share: float = 0.0
    beta2: float = 0.98
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.0
    validate_every: int = 500
    patience: int = 0
    save_every: int = 0
    keep: int = 2
    log_every: int = 10
    seed: int = 0
    device: str = "auto"
    precision: Literal["float32", "bfloat16", "float64"] = "float32"
    compile: bool = False
    checkpoint_activations: float = 0.0
    shard: int = 1
    capture: bool = True
    deterministic: bool = True
    bad_loss: Literal["stop", "skip"] = "stop"
    tensorboard: bool = False

    def __post_init__(self) -> None:
        positive = ("steps", "batch_tokens", "accumulate", "keep", "log_every")
        check_positive(self, *positive)
        check_fraction(self, "beta2", "ema", "warmup_share")
        rates = ("learning_rate", "encoder_rate", "weight_decay", "clip")
        counts = ("epochs", "warmup", "validate_every", "patience", "save_every", "freeze")
        for name in (*rates, *counts, "lora", "shard"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name}={getattr(self, name)} must be 0 or more")
        if not 0 < self.layer_decay <= 1:
            raise ConfigError(f"layer_decay={self.layer_decay} must be above 0 and at most 1")
        if not 0 <= self.checkpoint_activations <= 1:
            share = self.checkpoint_activations
            raise ConfigError(f"checkpoint_activations={share} must be from 0 to 1, a share")
        if not self.lora_alpha > 0:
            raise ConfigError(f"lora_alpha={self.lora_alpha} must be above 0")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed={self.seed} must be at least 0 and below {1 << 32}")

    def definite(self, batches: int) -> "TrainSettings":
        """With all that is counted in epochs counted in updates: an epoch has so many batches."""
        epoch = max(1, batches // self.accumulate)
        ends = max(1, round(self.epochs * batches / self.accumulate))
        steps = min(self.steps, ends) if self.epochs else self.steps
        return replace(
            self,
            steps=steps,
            warmup=round(self.warmup_share * steps) if self.warmup_share else self.warmup,
            validate_every=self.validate_every or epoch,
        )


# What may change between two starts of a run without being asked for: how its numbers are computed,
# not which. Their last digits may differ with the device, or where a last block is computed whole.
HARMLESS = {
    "log_every",
    "keep",
    "save_every",
    "tensorboard",
    "device",
    "capture",
    "deterministic",
    "checkpoint_activations",
    "shard",
}
