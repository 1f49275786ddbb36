"""Recipes for text: translators and language models."""

from saccade.data.lingua import LinguaSettings
from saccade.models import preset
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

# These learn the built-in data on two cores in minutes.
BUILT_IN: dict[str, Recipe] = {
    "rnn-lm": Recipe(
        about="RNN language model, one word after another",
        system="S1",
        lecture="A basic neural language model",
        model=preset("rnn-lm-nano"),
        task=LanguageSettings(unit="lines", level="words"),
        train=TrainSettings(
            steps=500,
            batch_tokens=256,
            accumulate=4,  # a batch holds lines of one length: here, one sentence of the three
            ema=0.99,
            learning_rate=1e-2,
            schedule="cosine",
            warmup=20,
            validate_every=250,
        ),
    ),
    "rnn-seq2seq": Recipe(
        about="encoder RNN to decoder RNN through one vector: the bottleneck",
        system="S2",
        lecture="Sequence to sequence with RNNs",
        model=preset("rnn-seq2seq-small"),
        # Short sentences only: through one vector the long ones are not learnt in minutes anyway.
        task=TranslationSettings(
            vocabulary=4000,
            pairs=100_000,
            label_smoothing=0.0,
            lingua=LinguaSettings(longest=12),
        ),
        train=TrainSettings(
            steps=6500,
            batch_tokens=1024,
            learning_rate=4e-3,
            schedule="cosine",
            warmup=100,
            validate_every=1300,
        ),
    ),
    "rnn-attention": Recipe(
        about="RNN translator that looks at the source at every step",
        system="S3",
        lecture="Sequence to sequence with RNNs and attention",
        model=preset("rnn-attention-small"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000, label_smoothing=0.0),
        train=TrainSettings(
            steps=3300,
            batch_tokens=1024,
            learning_rate=4e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "conv-seq2seq": Recipe(
        about="gated convolutions with attention in every decoder layer",
        system="S4",
        lecture="Three ways of processing sequences",
        model=preset("conv-seq2seq-small"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000),
        train=TrainSettings(
            steps=2600,
            batch_tokens=2048,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "transformer": Recipe(
        about="encoder–decoder Transformer",
        system="S7",
        lecture="Attention is all you need",
        model=preset("transformer-nano"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000, label_smoothing=0.0),
        train=TrainSettings(
            steps=3300,
            batch_tokens=1536,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "gpt": Recipe(
        about="decoder-only Transformer language model",
        system="S8",
        lecture="Pre-training and fine-tuning",
        model=preset("gpt-nano"),
        task=LanguageSettings(unit="lines", level="words", window=128),
        train=TrainSettings(
            steps=500,
            batch_tokens=256,
            accumulate=4,  # a batch holds lines of one length: here, one sentence of the three
            ema=0.99,
            learning_rate=3e-3,
            schedule="cosine",
            warmup=20,
            validate_every=250,
        ),
    ),
}
# These hold the settings that were measured on real data (docs/results.md), and need --data.
MEASURED: dict[str, Recipe] = {
    "transformer-multi30k": Recipe(
        about="Transformer for a corpus of some ten thousand pairs",
        system="S7",
        lecture="Attention is all you need",
        model=preset("transformer-small"),
        task=TranslationSettings(),
        train=TrainSettings(
            steps=4500,
            batch_tokens=8192,
            batches="mixed",
            learning_rate=2e-3,
            schedule="cosine",
            warmup=500,
            ema=0.998,
            validate_every=900,
            precision="bfloat16",
        ),
    ),
    "rnn-attention-multi30k": Recipe(
        about="RNN with attention for a corpus of some ten thousand pairs",
        system="S3",
        lecture="Sequence to sequence with RNNs and attention",
        model=preset("rnn-attention-medium"),
        task=TranslationSettings(vocabulary=6000),
        train=TrainSettings(
            steps=3000,
            batch_tokens=8192,
            learning_rate=3e-3,
            schedule="cosine",
            ema=0.998,
            validate_every=250,
            precision="bfloat16",
        ),
    ),
    "gpt-shakespeare": Recipe(
        about="GPT over the characters of a megabyte of text",
        system="S8",
        lecture="Pre-training and fine-tuning",
        model=preset("gpt-mini"),
        task=LanguageSettings(level="characters", window=256),
        train=TrainSettings(
            steps=3000,
            batch_tokens=16384,
            schedule="cosine",
            warmup=100,
            beta2=0.99,
            weight_decay=0.1,
            validate_every=250,
            precision="bfloat16",
        ),
    ),
    "rnn-lm-ptb": Recipe(
        about="stacked LSTM over the words of a million-word text",
        system="S1",
        lecture="A basic neural language model",
        model=preset("rnn-lm-medium"),
        task=LanguageSettings(level="words", vocabulary=10_004, window=100),
        train=TrainSettings(
            steps=9000,
            batch_tokens=4000,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=200,
            weight_decay=0.0,
            clip=0.25,
            ema=0.999,
        ),
    ),
}
