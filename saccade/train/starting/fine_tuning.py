"""Which of a model's weights learn, where it starts from some that others have trained.

All of them by default; with `freeze` those above so many blocks; with `lora` two thin matrices
beside those of queries and values, and what lies above the last block.
"""

from torch import nn

from saccade.blocks.lora import adapt, adaptable
from saccade.errors import ConfigError
from saccade.models.protocol import HasEncoderRate, HasLayers, StartsFromPublished
from saccade.train.optimizers.optimizer import layer_depths
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)  # which learn from batches without a gradient


def check_fine_tuning(model: nn.Module, recipe: Recipe) -> None:
    """Refuse, before any data are read, what this model cannot leave as it is."""
    settings = recipe.train
    if not settings.freeze and not settings.lora:
        return
    if not recipe.init and not isinstance(model, StartsFromPublished):
        what = f"lora={settings.lora}" if settings.lora else f"freeze={settings.freeze}"
        raise ConfigError(
            f"{what} keeps weights as they are, and these would be fresh; name those to start from "
            "with --init, or leave it at 0"
        )
    if settings.lora:
        _check_rank(model, settings)
    learning(model, settings)


def _check_rank(model: nn.Module, settings: TrainSettings) -> None:
    layers = adaptable(model)
    if not layers:
        raise ConfigError(
            f"lora={settings.lora}: {type(model).__name__} has no matrices of queries and values "
            "to adapt; leave it at 0"
        )
    narrow = min(min(layer.in_features, layer.out_features) for layer in layers.values())
    if settings.lora >= narrow:
        raise ConfigError(
            f"lora={settings.lora} must be below {narrow}, the width of what it adapts; 4 to 16 "
            "are usual"
        )


def learning(model: nn.Module, settings: TrainSettings) -> set[nn.Parameter]:
    """The model's own weights that learn; the matrices that LoRA adds are not among them."""
    left = {p for p in model.parameters() if p.requires_grad} - _frozen(model, settings)
    if settings.lora:
        return left & _above(model)
    if not left:
        raise ConfigError(
            f"freeze={settings.freeze} leaves nothing of {type(model).__name__} to learn; give less"
        )
    return left


def _frozen(model: nn.Module, settings: TrainSettings) -> set[nn.Parameter]:
    """Those of the lowest blocks of the model, or of its image encoder, and of what is beneath."""
    if not settings.freeze:
        return set()
    part = model.slow_part if isinstance(model, HasEncoderRate) else None
    layered = model if isinstance(model, HasLayers) else part
    if not isinstance(layered, HasLayers) or not layered.layers_upwards():
        raise ConfigError(
            f"freeze={settings.freeze}: {type(model).__name__} does not say which of its layers "
            "lies above which; leave it at 0"
        )
    blocks = min(settings.freeze, len(layered.layers_upwards()))
    return {p for p, depth in layer_depths(layered).items() if depth <= blocks}


def _above(model: nn.Module) -> set[nn.Parameter]:
    """Those above the last block: of the head, and of the norm before it."""
    if not isinstance(model, HasLayers):
        return set()
    blocks = len(model.layers_upwards())
    return {p for p, depth in layer_depths(model).items() if depth > blocks}


def fine_tune(model: nn.Module, settings: TrainSettings) -> list[nn.Module]:
    """Keep what is not to learn as it is, and add what LoRA adds; gives the parts that stand still.

    Those are never in training: no dropout, and BatchNorm goes on with the statistics it has.
    """
    if not settings.freeze and not settings.lora:
        return []
    learns, frozen = learning(model, settings), _frozen(model, settings)
    for parameter in model.parameters():
        parameter.requires_grad_(parameter in learns)
    still = [part for part in model.modules() if _all_in(part, frozen)]
    if settings.lora:
        still += [part for part in model.modules() if isinstance(part, NORMS)]
        for layer in adaptable(model).values():
            if layer.weight not in frozen:
                adapt(layer, rank=settings.lora, alpha=settings.lora_alpha)
    return still


def _all_in(part: nn.Module, frozen: set[nn.Parameter]) -> bool:
    parameters = list(part.parameters())
    return bool(parameters) and all(p in frozen for p in parameters)
