"""Hugging Face's Trainer: epochs over tokens in memory, padded batch by batch."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.base import Deciding

NEEDS = "accelerate"  # without which it does not train
Item = dict[str, Any]
Figures = Callable[[Any], dict[str, float]]  # of the logits of all held-out texts


@dataclass(frozen=True)
class TrainerSettings:
    """How it trains: as ours does, in its own words."""

    device: torch.device
    epochs: float
    batch: int
    learning_rate: float
    warmup: int
    weight_decay: float
    beta2: float
    mixed: bool  # bfloat16
    seed: int

    def arguments(self, folder: str, deciding: Deciding) -> Any:
        """It validates and saves after each epoch, and keeps the best, as ours."""
        hf: Any = import_module("transformers")
        return hf.TrainingArguments(
            output_dir=folder,
            num_train_epochs=self.epochs,
            per_device_train_batch_size=self.batch,
            per_device_eval_batch_size=8 * self.batch,
            learning_rate=self.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=self.warmup,
            weight_decay=self.weight_decay,
            adam_beta2=self.beta2,
            bf16=self.mixed,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=2,
            load_best_model_at_end=True,
            metric_for_best_model=deciding.figure,
            greater_is_better=deciding.higher,
            report_to=[],
            disable_tqdm=True,
            log_level="error",
            logging_strategy="no",
            seed=self.seed,
            use_cpu=self.device.type == "cpu",
            dataloader_pin_memory=self.device.type == "cuda",
        )


def fine_tuned(
    model: nn.Module,
    vocabulary: Vocabulary,
    train: list[Item],
    valid: list[Item],
    *,
    how: TrainerSettings,
    deciding: Deciding,
    figures: Figures,
) -> tuple[float, dict[str, float]]:
    """Seconds of the training, validations and saving included, and the figures of the best."""
    hf: Any = import_module("transformers")
    hf.utils.logging.disable_progress_bar()
    tokenizer = Tokenizer.from_str(vocabulary.to_json())
    fast = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=tokenizer.id_to_token(vocabulary.pad)
    )

    def measured(given: Any) -> dict[str, float]:
        return figures(given.predictions)

    with TemporaryDirectory() as folder:
        trainer = hf.Trainer(
            model=model,
            args=how.arguments(folder, deciding),
            train_dataset=train,
            eval_dataset=valid,
            data_collator=hf.DataCollatorWithPadding(fast),
            compute_metrics=measured,
        )
        trainer.remove_callback(hf.PrinterCallback)
        begun = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - begun
    return seconds, _best(trainer.state.log_history, deciding)


def _best(history: list[dict[str, Any]], deciding: Deciding) -> dict[str, float]:
    """Of all that it has told, the figures of its best validation."""
    prefix = "eval_"
    validated = [
        {name.removeprefix(prefix): value for name, value in line.items()}
        for line in history
        if prefix + deciding.figure in line
    ]
    best = max if deciding.higher else min
    return best(validated, key=lambda one: one[deciding.figure])
