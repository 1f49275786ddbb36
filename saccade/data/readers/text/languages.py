"""What people call languages where they name columns and files: en, eng_Latn, English sentence."""

import re
from collections.abc import Iterable, Sequence

# ISO 639-1, then 639-2 where corpora use it, then the English name.
_LANGUAGES = """
af afr Afrikaans, am amh Amharic, ar ara Arabic, az aze Azerbaijani, be bel Belarusian,
bg bul Bulgarian, bn ben Bengali, bs bos Bosnian, ca cat Catalan, cs ces Czech, cy cym Welsh,
da dan Danish, de deu German, el ell Greek, en eng English, eo epo Esperanto, es spa Spanish,
et est Estonian, eu eus Basque, fa fas Persian, fi fin Finnish, fr fra French, ga gle Irish,
gl glg Galician, gu guj Gujarati, ha hau Hausa, he heb Hebrew, hi hin Hindi, hr hrv Croatian,
hu hun Hungarian, hy hye Armenian, id ind Indonesian, ig ibo Igbo, is isl Icelandic,
it ita Italian, ja jpn Japanese, ka kat Georgian, kk kaz Kazakh, km khm Khmer, kn kan Kannada,
ko kor Korean, la lat Latin, lo lao Lao, lt lit Lithuanian, lv lav Latvian, mg mlg Malagasy,
mk mkd Macedonian, ml mal Malayalam, mn mon Mongolian, mr mar Marathi, ms msa Malay,
mt mlt Maltese, my mya Burmese, ne nep Nepali, nl nld Dutch, no nor Norwegian, nb nob Bokmål,
pa pan Punjabi, pl pol Polish, pt por Portuguese, ro ron Romanian, ru rus Russian,
si sin Sinhala, sk slk Slovak, sl slv Slovenian, so som Somali, sq sqi Albanian, sr srp Serbian,
sv swe Swedish, sw swa Swahili, ta tam Tamil, te tel Telugu, th tha Thai, tl tgl Tagalog,
tr tur Turkish, uk ukr Ukrainian, ur urd Urdu, uz uzb Uzbek, vi vie Vietnamese, xh xho Xhosa,
yo yor Yoruba, zh zho Chinese, zu zul Zulu
"""
_CODES = {
    name.lower(): entry.split()[0] for entry in _LANGUAGES.split(",") for name in entry.split()
}
_ALSO = r"words?|sentences?|texts?|phrases?|translations?|side|lang(uage)?|raw|tok(enized)?"
# de, de-AT, zh_Hans, deu_Latn, zh-Hans-CN
_SHORT = re.compile(r"([a-z]{2,3})([-_]\w{2,4}){0,2}", re.IGNORECASE)
_NAMED = re.compile(rf"(?P<a>(?:{_ALSO})[ _-]+)?(?P<name>[^\W\d_]+)(?:[ _/-]+(?:{_ALSO}))*", re.I)


def language_of(said: str) -> str:
    """The code of the language that a name of a column or an ending says; "" for any other text."""
    said = said.strip()
    named = _SHORT.fullmatch(said) or _NAMED.fullmatch(said)
    if named is None:
        return ""
    return _CODES.get((named[1] if named.re is _SHORT else named["name"]).lower(), "")


def place_of(language: str, names: Sequence[str]) -> int | None:
    """Which of some names is a language: the very name, else the only one that means it."""
    if language in names:
        return names.index(language)
    code = language_of(language)
    meant = [place for place, name in enumerate(names) if code and language_of(name) == code]
    return meant[0] if len(meant) == 1 else None


def languages_among(names: Iterable[str]) -> list[str]:
    """Those that name a language; `id` beside two of them numbers the rows."""
    found = [name for name in names if language_of(name)]
    others = [name for name in found if name.lower() != "id"]
    return others if len(others) > 1 else found
