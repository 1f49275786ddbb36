"""Every model family, and its published and small sizes."""

from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models.caption import caption_transformer, show_and_tell, show_attend_tell
from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.models.detection import detr
from saccade.models.detection.config import DetrConfig
from saccade.models.image_tokens import dalle, dvae
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.models.joint import clip, vilbert
from saccade.models.joint.clip import ClipConfig
from saccade.models.joint.config import VilbertConfig
from saccade.models.text import (
    bert,
    convolutional,
    electra,
    gpt,
    rnn_attention,
    seq2seq,
    transformer,
)
from saccade.models.text import rnn_language as language
from saccade.models.text.bert import BertConfig
from saccade.models.text.convolutional import ConvSeq2SeqConfig
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.foreign import ForeignEncoderConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.models.text.seq2seq import Seq2SeqConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision import attention_resnet, convnext, mobilenet, mvit, resnet, swin, vit
from saccade.models.vision.attention_resnet import AttentionResNetConfig
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

FAMILIES: dict[str, type[ModelConfig]] = {
    "rnn-language": RnnLanguageConfig,
    "gpt": GptConfig,
    "bert": BertConfig,
    "electra": ElectraConfig,
    "transformers": ForeignEncoderConfig,
    "seq2seq": Seq2SeqConfig,
    "rnn-attention": RnnAttentionConfig,
    "convolutional": ConvSeq2SeqConfig,
    "transformer": TransformerConfig,
    "show-and-tell": ShowAndTellConfig,
    "show-attend-tell": ShowAttendTellConfig,
    "caption-transformer": CaptionTransformerConfig,
    "resnet": ResNetConfig,
    "attention-resnet": AttentionResNetConfig,
    "mobilenet": MobileNetConfig,
    "vit": VitConfig,
    "swin": SwinConfig,
    "mvit": MvitConfig,
    "convnext": ConvNextConfig,
    "detr": DetrConfig,
    "vilbert": VilbertConfig,
    "dvae": DvaeConfig,
    "dalle": DalleConfig,
    "clip": ClipConfig,
}

PRESETS: dict[str, ModelConfig] = {
    **language.PRESETS,
    **seq2seq.PRESETS,
    **rnn_attention.PRESETS,
    **convolutional.PRESETS,
    **transformer.PRESETS,
    **gpt.PRESETS,
    **bert.PRESETS,
    **electra.PRESETS,
    **show_and_tell.PRESETS,
    **show_attend_tell.PRESETS,
    **caption_transformer.PRESETS,
    **resnet.PRESETS,
    **attention_resnet.PRESETS,
    **mobilenet.PRESETS,
    **vit.PRESETS,
    **swin.PRESETS,
    **mvit.PRESETS,
    **convnext.PRESETS,
    **detr.PRESETS,
    **vilbert.PRESETS,
    **dvae.PRESETS,
    **dalle.PRESETS,
    **clip.PRESETS,
}


def preset(name: str) -> ModelConfig:
    """Look a preset up by name."""
    if name not in PRESETS:
        raise ConfigError(f"no preset {name!r}; try one of: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]


# Some settings make another thing of a family; the first that all hold name it.
RELATIVES: tuple[tuple[str, dict[str, object]], ...] = (
    ("hybrid", {"reads": "cnn"}),
    ("sl-{}", {"reads": "shifted", "local": True}),
    ("shifted-{}", {"reads": "shifted"}),
    ("local-{}", {"local": True}),
)


def series(config: ModelConfig) -> str:
    """What the literature compares: the family, or a relative, as a ViT that reads a CNN is."""
    settings, name = vars(config).items(), family(config)
    fitting = (form.format(name) for form, those in RELATIVES if those.items() <= settings)
    return next(fitting, name)


def family(config: ModelConfig) -> str:
    """The name under which a run folder stores this kind of model."""
    return next(name for name, kind in FAMILIES.items() if type(config) is kind)
