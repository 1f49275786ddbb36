"""Every model family, and its published and small sizes."""

from saccade.config import ModelConfig
from saccade.errors import ConfigError
from saccade.models import (
    caption_transformer,
    convolutional,
    gpt,
    language,
    rnn_attention,
    seq2seq,
    show_and_tell,
    show_attend_tell,
    transformer,
)
from saccade.models.caption_transformer import CaptionTransformerConfig
from saccade.models.convolutional import ConvSeq2SeqConfig
from saccade.models.gpt import GptConfig
from saccade.models.language import RnnLanguageConfig
from saccade.models.rnn_attention import RnnAttentionConfig
from saccade.models.seq2seq import Seq2SeqConfig
from saccade.models.show_and_tell import ShowAndTellConfig
from saccade.models.show_attend_tell import ShowAttendTellConfig
from saccade.models.transformer import TransformerConfig

FAMILIES: dict[str, type[ModelConfig]] = {
    "rnn-language": RnnLanguageConfig,
    "gpt": GptConfig,
    "seq2seq": Seq2SeqConfig,
    "rnn-attention": RnnAttentionConfig,
    "convolutional": ConvSeq2SeqConfig,
    "transformer": TransformerConfig,
    "show-and-tell": ShowAndTellConfig,
    "show-attend-tell": ShowAttendTellConfig,
    "caption-transformer": CaptionTransformerConfig,
}

PRESETS: dict[str, ModelConfig] = {
    **language.PRESETS,
    **seq2seq.PRESETS,
    **rnn_attention.PRESETS,
    **convolutional.PRESETS,
    **transformer.PRESETS,
    **gpt.PRESETS,
    **show_and_tell.PRESETS,
    **show_attend_tell.PRESETS,
    **caption_transformer.PRESETS,
}


def preset(name: str) -> ModelConfig:
    """Look a preset up by name."""
    if name not in PRESETS:
        raise ConfigError(f"no preset {name!r}; try one of: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]


def family(config: ModelConfig) -> str:
    """The name under which a run folder stores this kind of model."""
    return next(name for name, kind in FAMILIES.items() if type(config) is kind)
