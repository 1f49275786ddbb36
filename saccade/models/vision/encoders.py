"""Every image encoder by name, for models that read images with one."""

from saccade.errors import ConfigError
from saccade.models.vision import attention_resnet, convnext, mobilenet, mvit, resnet, swin, vit
from saccade.models.vision.image_encoder import ImageEncoderConfig

ENCODERS: dict[str, ImageEncoderConfig] = {
    **resnet.PRESETS,
    **attention_resnet.PRESETS,
    **mobilenet.PRESETS,
    **convnext.PRESETS,
    **vit.PRESETS,
    **swin.PRESETS,
    **mvit.PRESETS,
}


def encoder_config(name: str) -> ImageEncoderConfig:
    """The sizes of an image encoder; a name that nobody knows is refused."""
    if name not in ENCODERS:
        raise ConfigError(f"no image encoder {name!r}; try one of: {', '.join(ENCODERS)}")
    return ENCODERS[name]
