"""What is too long is left out before training, counted, and its reason named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from saccade.errors import ConfigError, DataError
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.text.convolutional import ConvSeq2SeqConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.base import Preparation
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.captioning.equalizer import EqualizerSettings
from saccade.tasks.captioning.task import Captioning
from saccade.tasks.language.task import LanguageModelling, LanguageSettings, read_language
from saccade.tasks.translation.task import Translation, TranslationSettings, read_corpus

CPU = torch.device("cpu")


def lines(*lengths: int) -> str:
    return "".join(" ".join(["w"] * length) + f" x{i}\n" for i, length in enumerate(lengths))


@pytest.fixture
def corpus(tmp_path: Path) -> TranslationSettings:
    for language in ("en", "fr"):
        (tmp_path / f"train.{language}").write_text(lines(*range(1, 11)))
        (tmp_path / f"valid.{language}").write_text(lines(3, 8, 60, 70))
    return TranslationSettings(data=str(tmp_path), source="en", target="fr", level="words")


def test_pairs_that_are_left_out_are_counted_with_the_option_that_says_so(
    corpus: TranslationSettings,
) -> None:
    task = Translation(replace(corpus, longest=6), Preparation(budget=50, seed=0))
    assert task.report[2:] == [
        "left out: 6 training pairs over 6 tokens (--longest)",
        "left out: 2 validation pairs over 60 tokens (ten times --longest)",
    ]


def test_pairs_longer_than_the_model_takes_are_left_out_and_the_rest_can_be_validated(
    corpus: TranslationSettings,
) -> None:
    config = ConvSeq2SeqConfig(width=8, depth=1, longest=10)
    assert config.most_words == 10
    how = Preparation(budget=50, seed=0, most_words=config.most_words)
    task = Translation(corpus, how)
    assert task.report[2:] == [
        "left out: 2 training pairs over 10 tokens (--model.longest)",
        "left out: 2 validation pairs over 10 tokens (--model.longest)",
    ]
    model = task.fit(config).build()
    assert task.validate(model, CPU)["loss"] > 0  # type: ignore[arg-type]
    for position in range(task.batches_per_epoch):
        task.losses(model, task.batch(position))  # type: ignore[arg-type]


def test_where_nothing_is_left_the_option_to_raise_is_named(corpus: TranslationSettings) -> None:
    with pytest.raises(DataError, match=r"pairs has under 2 tokens; raise --model\.longest"):
        Translation(corpus, Preparation(budget=50, seed=0, most_words=2))


def test_what_is_held_out_is_not_counted_as_training(
    corpus: TranslationSettings, tmp_path: Path
) -> None:
    for language in ("en", "fr"):
        (tmp_path / f"valid.{language}").unlink()
        (tmp_path / f"train.{language}").write_text("".join(f"w{i}\n" for i in range(120)))
    reports = [read_corpus(corpus, split).report for split in ("train", "valid")]
    assert reports == ["117 of 120 pairs from train.en + train.fr", "3 held out for validation"]


def test_lines_longer_than_a_language_model_sees_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(lines(1, 2, 3, 9))
    (tmp_path / "valid.txt").write_text(lines(2, 30, 40))
    settings = LanguageSettings(data=str(tmp_path), unit="lines", level="words", window=8)
    config = GptConfig(width=8, depth=1, heads=1, longest=16)
    task = LanguageModelling(settings, Preparation(budget=50, seed=0, most_words=config.most_words))
    assert task.report[2:] == [
        "left out: 1 training lines over 8 tokens (--window)",
        "left out: 2 validation lines over 16 tokens (--model.longest)",
    ]
    assert task.validate(task.fit(config).build(), CPU)["loss"] > 0  # type: ignore[arg-type]


def test_a_row_longer_than_a_batch_is_refused_and_both_ways_out_work(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(lines(3, 40))
    (tmp_path / "valid.txt").write_text(lines(2))
    settings = LanguageSettings(data=str(tmp_path), unit="lines", level="words")
    with pytest.raises(DataError, match=r"give --train\.batch-tokens 42, or lower .*--window"):
        LanguageModelling(settings, Preparation(budget=20, seed=0))
    assert LanguageModelling(settings, Preparation(budget=42, seed=0)).batches_per_epoch
    shorter = replace(settings, window=19)
    assert LanguageModelling(shorter, Preparation(budget=20, seed=0)).batches_per_epoch


def test_captions_left_out_of_validation_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.captioning.data.HELD_BACK", 20)
    settings = CaptioningSettings(scenes=20, image=32)
    task = Captioning(settings, Preparation(budget=50, seed=0, most_words=12))
    assert [line.split(":")[0] for line in task.report] == [
        "train",
        "valid",
        "left out",
        "left out",
    ]
    assert task.report[3].endswith("validation captions over 12 tokens (--model.longest)")


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (GptConfig(longest=7), 7),
        (ConvSeq2SeqConfig(longest=7), 7),
        (TransformerConfig(longest=7, positions="learned"), 7),
        (TransformerConfig(longest=7), None),
        (RnnAttentionConfig(), None),
    ],
)
def test_a_config_says_how_many_words_its_model_takes(config: object, most: int | None) -> None:
    assert config.most_words == most  # type: ignore[attr-defined]


def test_a_window_that_the_model_cannot_take_is_refused_and_both_ways_out_work() -> None:
    settings, config = LanguageSettings(window=64), GptConfig(longest=32)
    with pytest.raises(ConfigError, match=r"give --window 32, or --model\.longest 64"):
        settings.check(config)
    replace(settings, window=32).check(config)
    settings.check(replace(config, longest=64))


@pytest.mark.parametrize("name", ["source", "target"])
def test_a_language_of_data_that_are_not_given_is_refused(name: str) -> None:
    wrong = TranslationSettings(**{name: "en"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"{name}=en is of data of your own; give --data"):
        wrong.check(RnnAttentionConfig())
    replace(wrong, data="corpus").check(RnnAttentionConfig())


def test_groups_of_data_that_are_not_given_are_refused() -> None:
    groups = EqualizerSettings(groups=("man", "woman"))
    wrong = CaptioningSettings(equalizer=groups)
    with pytest.raises(ConfigError, match="groups=man woman: nobody in the built-in scenes"):
        wrong.check(ShowAndTellConfig())
    CaptioningSettings().check(ShowAndTellConfig())
    replace(wrong, data="photos").check(ShowAndTellConfig())


def test_a_split_that_built_in_data_have_not_is_refused() -> None:
    with pytest.raises(DataError, match="lingua has no split 'foo'; there are: train, valid, test"):
        read_corpus(TranslationSettings(pairs=5), "foo")
    with pytest.raises(DataError, match="three-sentence world has no split 'foo'"):
        read_language(LanguageSettings(), "foo")
