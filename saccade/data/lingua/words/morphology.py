"""Inflection: how English and French words change with number, gender, person and tense."""

import re
from functools import cache
from typing import NamedTuple

from saccade.data.lingua.words.tables import rows

# The persons every table below is ordered by; tu is left out, since "you" is always vous.
JE, IL, NOUS, VOUS, ILS = range(5)

Persons = tuple[str, str, str, str, str]
Forms = tuple[str, str, str, str]  # masculine, feminine, masculine plural, feminine plural


class Agreement(NamedTuple):
    """What a subject asks of its verb, or a noun of its adjective."""

    person: int = IL
    feminine: bool = False

    @property
    def plural(self) -> bool:
        """Whether more than one is meant."""
        return self.person >= NOUS

    @property
    def form(self) -> int:
        """Which of the four `Forms` agrees."""
        return 2 * (self.person >= NOUS) + self.feminine


class Conjugation(NamedTuple):
    """A French verb, every form the grammar uses."""

    infinitive: str
    present: Persons
    imperfect: Persons
    future: Persons
    subjunctive: Persons
    participle: Forms


class EnglishVerb(NamedTuple):
    """An English verb, every form the grammar uses."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


@cache
def conjugate(infinitive: str) -> Conjugation:
    """Every form of a French verb, from its infinitive."""
    present, participle, future_stem, irregular = _principal_parts(infinitive)
    stem = present[NOUS].removesuffix("ons") if infinitive != "être" else "ét"
    soft = stem  # manger, commencer: the e and the cedilla serve only before a and o
    if infinitive.endswith("ger"):
        soft = stem.removesuffix("e")
    elif infinitive.endswith("cer"):
        soft = stem.removesuffix("ç") + "c"
    imperfect = (stem + "ais", stem + "ait", soft + "ions", soft + "iez", stem + "aient")
    future = _persons([future_stem + ending for ending in ("ai", "a", "ons", "ez", "ont")])
    strong = present[ILS].removesuffix("ent")
    regular = (strong + "e", strong + "e", imperfect[NOUS], imperfect[VOUS], strong + "ent")
    subjunctive = _persons(irregular.split()) if irregular else regular
    agreeing = inflect(participle, "due" if participle == "dû" else participle + "e")
    return Conjugation(infinitive, present, imperfect, future, subjunctive, agreeing)


def _principal_parts(infinitive: str) -> tuple[Persons, str, str, str]:
    """The present, participle, stem of the future and irregular subjunctive: they give the rest."""
    stem = infinitive[:-2]
    if infinitive in _irregular():
        return _irregular()[infinitive]
    if infinitive.endswith("er"):
        open_stem = stem + "e" if stem.endswith("g") else re.sub("c$", "ç", stem)
        present = (f"{stem}e", f"{stem}e", f"{open_stem}ons", f"{stem}ez", f"{stem}ent")
        return present, stem + "é", infinitive, ""
    if infinitive.endswith("ir"):
        present = _persons([stem + end for end in ("is", "it", "issons", "issez", "issent")])
        return present, stem + "i", infinitive, ""
    present = _persons([stem + end for end in ("s", "", "ons", "ez", "ent")])
    return present, stem + "u", infinitive[:-1], ""


@cache
def _irregular() -> dict[str, tuple[Persons, str, str, str]]:
    table = rows("conjugations", "infinitive", "present", "participle", "future", "subjunctive")
    return {
        infinitive: (_persons(present.split()), participle, future, subjunctive)
        for infinitive, present, participle, future, subjunctive in table
    }


def _persons(forms: list[str]) -> Persons:
    je, il, nous, vous, ils = forms
    return je, il, nous, vous, ils


def french_plural(singular: str) -> str:
    """The regular plural of a French noun or masculine adjective."""
    if singular.endswith(("s", "x", "z")):
        return singular
    if singular.endswith("al"):
        return singular.removesuffix("l") + "ux"
    return singular + ("x" if singular.endswith("eau") else "s")


def french_feminine(masculine: str) -> str:
    """The regular feminine of a French adjective."""
    for ending, feminine in (("eux", "euse"), ("if", "ive"), ("er", "ère"), ("en", "enne")):
        if masculine.endswith(ending):
            return masculine.removesuffix(ending) + feminine
    if masculine.endswith("el"):
        return masculine + "le"
    return masculine if masculine.endswith("e") else masculine + "e"


def inflect(masculine: str, feminine: str = "") -> Forms:
    """The four forms of an adjective or participle."""
    feminine = feminine or french_feminine(masculine)
    return masculine, feminine, french_plural(masculine), feminine + "s"


def english_plural(singular: str) -> str:
    """The regular plural of an English noun, or third person of a verb."""
    if singular.endswith(("s", "x", "ch", "sh", "o")):
        return singular + "es"
    if re.search("[^aeiou]y$", singular):
        return singular.removesuffix("y") + "ies"
    return singular + "s"


def english_verb(base: str, past: str = "", participle: str = "") -> EnglishVerb:
    """Every form of an English verb; regular where past and participle are not given."""
    doubled = base
    if re.fullmatch("[^aeiou]*[aeiou][^aeiouwxy]|begin|cancel|travel", base):
        doubled = base + base[-1]
    if not past:
        past = re.sub("([^aeiou])y$", r"\1i", doubled) + ("d" if base.endswith("e") else "ed")
    gerund = re.sub("([^e])e$", r"\1", doubled) + "ing"
    return EnglishVerb(base, english_plural(base), past, participle or past, gerund)
