"""Detectors for Hugging Face's transformers: a plain DETR with a ResNet, as it was published."""

from pathlib import Path
from typing import Any, NoReturn

from safetensors.torch import save_file

from saccade.app.export import huggingface
from saccade.app.export.classifier import BICUBIC, write_json
from saccade.app.export.counterpart import State, refuse
from saccade.app.export.image_readme import detector_readme
from saccade.app.kinds.base import Exporter, LoadedRun
from saccade.app.kinds.run_classes import object_names
from saccade.config import ModelConfig
from saccade.data.images.augment import IMAGENET
from saccade.models.detection.detr import DetrConfig
from saccade.models.names.detr import LIBRARIES
from saccade.models.names.table import to_theirs
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.resnet import ResNetConfig
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.losses import NOTHING
from saccade.tasks.detection.matching import Weights
from saccade.tasks.detection.task import ASSET
from saccade.train.recipe import Recipe

STAGES = 5
PLAIN = "use the run itself, or train a plain one as detr-r50 is"


def _refuse(config: DetrConfig, name: str, why: str) -> NoReturn:
    refuse(config, huggingface.LIBRARY, name, why, instead=PLAIN)


def _check(recipe: Recipe) -> None:
    config = _model(recipe.model)
    if config.anchored:
        _refuse(config, "anchored", "its queries are no boxes that each layer mends")
    if not config.no_object:
        _refuse(config, "no_object", "there nothing is a class of its own")
    if config.finer:
        _refuse(config, "finer", "it reads one stage alone")
    if config.stage == 1:
        _refuse(config, "stage", "its first is our second")
    _image_encoder(config)


def _model(config: ModelConfig) -> DetrConfig:
    assert isinstance(config, DetrConfig)
    return config


def _image_encoder(config: DetrConfig) -> ResNetConfig:
    found = encoder_config(config.encoder)
    match found:
        case ResNetConfig(stem="imagenet", dilated=False):
            return found
        case ResNetConfig(dilated=True):
            _refuse(config, "encoder", "its own ResNets are not dilated")
        case _:
            _refuse(config, "encoder", "only a ResNet as published gives the same grid there")


def _settings(config: DetrConfig, names: tuple[str, ...], task: DetectionSettings) -> Any:
    encoder = _image_encoder(config)
    stages = (config.stage or STAGES) - 1
    sizes = huggingface.FAMILIES[ResNetConfig].settings(encoder, task.image)
    for each in ("hidden_sizes", "depths"):
        sizes[each] = sizes[each][:stages]
    features = {"model_type": "resnet", "num_channels": 3, "out_features": [f"stage{stages}"]}
    sides = ("encoder", "decoder")
    return {
        "model_type": "detr",
        "architectures": ["DetrForObjectDetection"],
        "use_timm_backbone": False,
        "backbone_config": {**features, **sizes},
        "num_channels": 3,
        "num_queries": config.queries,
        "d_model": config.width,
        "encoder_layers": config.encoder_depth,
        "decoder_layers": config.depth,
        **{f"{side}_attention_heads": config.heads for side in sides},
        **{f"{side}_ffn_dim": config.hidden for side in sides},
        "activation_function": "relu",
        "position_embedding_type": "sine",
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": config.dropout,
        **{name: int(x) for name, x in _costs(task.weights).items() if x == int(x)},
        "eos_coefficient": NOTHING,
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
        "dtype": "float32",
    }


def _costs(weights: Weights) -> dict[str, float]:
    """What counts how much when it is trained on; only whole numbers can be said there."""
    kinds = ("cost", "loss_coefficient")
    return {
        "class_cost": weights.classes,
        **{f"bbox_{kind}": weights.box for kind in kinds},
        **{f"giou_{kind}": weights.overlap for kind in kinds},
    }


def _state(config: DetrConfig, state: State) -> State:
    """Of several groups of queries the one that is used; no batches are counted there."""
    found = {name: x for name, x in state.items() if not name.endswith("num_batches_tracked")}
    found["queries.weight"] = found["queries.weight"][: config.queries]
    return found


def _fill(run: LoadedRun, folder: Path, quantization: str) -> str:
    config, task = _model(run.recipe.model), run.recipe.task
    assert isinstance(task, DetectionSettings)
    write_json(folder / "config.json", _settings(config, object_names(run), task))
    theirs = to_theirs(LIBRARIES["huggingface"], _state(config, dict(run.network.state_dict())))
    tensors = {name: tensor.contiguous() for name, tensor in theirs.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    processor = {
        "image_processor_type": "DetrImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"height": task.image, "width": task.image},
        "resample": BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [*IMAGENET.mean],
        "image_std": [*IMAGENET.deviation],
        "do_pad": False,
    }
    write_json(folder / "preprocessor_config.json", processor)
    return detector_readme(run.name, task.image)


EXPORTS: dict[str, Exporter] = {
    "huggingface": Exporter(check=_check, fill=_fill, assets=(ASSET,)),
}
