"""Tiny parallel corpora in other scripts than Latin, and tiny runs trained on them.

Each sentence is put together from a few phrases of our own, so that a model learns something of it
within seconds: Chinese and Japanese have no blanks, Arabic runs to the left, and emoji are of
several characters each.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.translation.task import TranslationSettings
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings

Phrases = list[tuple[str, str]]

# Who, what is done, to what: a sentence takes one of each, in the order of either language.
_CHINESE: tuple[Phrases, Phrases, Phrases] = (
    [("我", "私は"), ("老师", "先生は"), ("孩子们", "子供たちは"), ("我的朋友", "友達は")],
    [("喜欢", "好きです"), ("看见", "見ます"), ("买", "買います"), ("画", "描きます")],
    [("小猫", "子猫が"), ("苹果", "リンゴが"), ("红色的花", "赤い花が"), ("咖啡", "コーヒーが")],
)
_ARABIC: tuple[Phrases, Phrases, Phrases] = (
    [("أنا", "I"), ("المعلم", "the teacher"), ("الأولاد", "the boys"), ("صديقي", "my friend")],
    [("يحب", "likes"), ("يرى", "sees"), ("يشتري", "buys"), ("يَرسُم", "draws")],
    [
        ("القطة", "the cat"),
        ("تفاحة", "an apple"),
        ("زهرة حمراء", "a red flower"),
        ("قهوة", "coffee"),
    ],
)
_EMOJI: tuple[Phrases, Phrases, Phrases] = (
    [
        ("the family", "👨\u200d👩\u200d👧"),
        ("the cat", "🐱"),
        ("the cook", "👩🏽\u200d🍳"),
        ("France", "🇫🇷"),
    ],
    [("loves", "❤️"), ("sees", "👀"), ("wants", "🙏🏿"), ("cafe\u0301", "☕")],
    [("pizza", "🍕"), ("the sun", "☀️"), ("Japan", "🇯🇵"), ("a rainbow", "🏳️\u200d🌈")],
)
# Languages, phrases, the order of who, what and whom in the target, what is between and at the end.
WORLDS = {
    "chinese-japanese": (("zh", "ja"), _CHINESE, (0, 2, 1), ("", "。"), ("", "。")),
    "arabic-english": (("ar", "en"), _ARABIC, (0, 1, 2), (" ", "."), (" ", ".")),
    "emoji": (("en", "emoji"), _EMOJI, (0, 1, 2), (" ", "!"), (" ", " 🎉")),
}


def pairs(world: str, count: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """So many sentences and their translations."""
    _, phrases, order, (between, end), (target_between, target_end) = WORLDS[world]
    random, made = Random(seed), list[tuple[str, str]]()
    for _ in range(count):
        drawn = [random.choice(some) for some in phrases]
        source = between.join(one for one, _ in drawn) + end
        made.append((source, target_between.join(drawn[i][1] for i in order) + target_end))
    return made


def write_corpus(world: str, folder: Path, *, count: int = 200) -> Path:
    """As parallel files: train, valid and test."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate({"train": count, "valid": 8, "test": 12}.items()):
        for side, language in enumerate(WORLDS[world][0]):
            texts = [pair[side] for pair in pairs(world, size, seed=seed)]
            (folder / f"{split}.{language}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return folder


def train_on(world: str, folder: Path, *, steps: int = 30, vocabulary: int = 320) -> Path:
    """The folder of a tiny Transformer on such a corpus; most pieces are parts of characters."""
    source, target = WORLDS[world][0]
    data = write_corpus(world, folder / "data")
    recipe = replace(
        RECIPES["transformer"],
        model=TransformerConfig(width=32, heads=2, depth=2, hidden=64, longest=128, dropout=0.0),
        task=TranslationSettings(
            data=str(data), source=source, target=target, vocabulary=vocabulary
        ),
        train=TrainSettings(
            steps=steps, batch_tokens=2048, validate_every=steps, device="cpu", learning_rate=0.01
        ),
    )
    run = folder / world
    train(recipe, run, lambda event: None)
    return run
