"""What a task's settings make of texts."""

import pytest

from saccade.errors import DataError
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.tokenizer import learnt

LINES = {
    "Chinese": "人人生而自由在尊严和权利上一律平等他们赋有理性和良心",
    "Japanese": "すべての人間は生まれながらにして自由でありかつ尊厳と権利とについて平等である",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_lines_of_a_script_without_blanks_are_no_words(line: str) -> None:
    texts = [line[place:] + line[:place] for place in range(len(line))]
    with pytest.raises(DataError) as caught:
        learnt(LanguageSettings(level="words"), texts)
    told = str(caught.value)
    assert told.startswith("level=words takes what stands between blanks for a word, and ")
    assert told.endswith("give --level characters or --level bpe, or part the words by blanks")
    assert len(learnt(LanguageSettings(level="characters"), texts)) < 50
    assert learnt(LanguageSettings(vocabulary=300), texts).encode(line)


@pytest.mark.parametrize(
    "texts",
    [
        ["人人 生而 自由 ， 在 尊严 和 权利 上 一律 平等 。"],
        ["all human beings are born free and equal in dignity and rights"] * 9 + [LINES["Chinese"]],
        ["Alle Menschen sind frei", "Все люди рождаются свободными", "모든 인간은 태어날 때부터"],
    ],
    ids=["parted", "a line among many", "other scripts"],
)
def test_words_with_blanks_between_them_are_words(texts: list[str]) -> None:
    varied = [
        f"{text} {number:c}{number + 1:c}" for number, text in enumerate(texts * 20, start=97)
    ]
    assert len(learnt(LanguageSettings(level="words"), varied)) > 10
