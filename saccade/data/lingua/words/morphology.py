"""Inflection: how English and French words change with number, gender, person and tense."""

import re
from collections.abc import Mapping
from typing import NamedTuple

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


# infinitive: je, il, nous, vous, ils, participle, stem of the future
_IRREGULAR: Mapping[str, str] = {
    "aller": "vais va allons allez vont allé ir",
    "avoir": "ai a avons avez ont eu aur",
    "boire": "bois boit buvons buvez boivent bu boir",
    "comprendre": "comprends comprend comprenons comprenez comprennent compris comprendr",
    "connaître": "connais connaît connaissons connaissez connaissent connu connaîtr",
    "construire": "construis construit construisons construisez construisent construit construir",
    "courir": "cours court courons courez courent couru courr",
    "croire": "crois croit croyons croyez croient cru croir",
    "découvrir": "découvre découvre découvrons découvrez découvrent découvert découvrir",
    "devoir": "dois doit devons devez doivent dû devr",
    "dire": "dis dit disons dites disent dit dir",
    "disparaître": "disparais disparaît disparaissons disparaissez disparaissent disparu "
    "disparaîtr",
    "dormir": "dors dort dormons dormez dorment dormi dormir",
    "écrire": "écris écrit écrivons écrivez écrivent écrit écrir",
    "être": "suis est sommes êtes sont été ser",
    "faire": "fais fait faisons faites font fait fer",
    "partir": "pars part partons partez partent parti partir",
    "peindre": "peins peint peignons peignez peignent peint peindr",
    "pleuvoir": "pleus pleut pleuvons pleuvez pleuvent plu pleuvr",
    "pouvoir": "peux peut pouvons pouvez peuvent pu pourr",
    "prendre": "prends prend prenons prenez prennent pris prendr",
    "promettre": "promets promet promettons promettez promettent promis promettr",
    "recevoir": "reçois reçoit recevons recevez reçoivent reçu recevr",
    "revenir": "reviens revient revenons revenez reviennent revenu reviendr",
    "rire": "ris rit rions riez rient ri rir",
    "savoir": "sais sait savons savez savent su saur",
    "sourire": "souris sourit sourions souriez sourient souri sourir",
    "soutenir": "soutiens soutient soutenons soutenez soutiennent soutenu soutiendr",
    "suivre": "suis suit suivons suivez suivent suivi suivr",
    "traduire": "traduis traduit traduisons traduisez traduisent traduit traduir",
    "venir": "viens vient venons venez viennent venu viendr",
    "voir": "vois voit voyons voyez voient vu verr",
    "vouloir": "veux veut voulons voulez veulent voulu voudr",
}
_IRREGULAR_SUBJUNCTIVE: Mapping[str, str] = {
    "aller": "aille aille allions alliez aillent",
    "avoir": "aie ait ayons ayez aient",
    "être": "sois soit soyons soyez soient",
    "faire": "fasse fasse fassions fassiez fassent",
    "pouvoir": "puisse puisse puissions puissiez puissent",
    "savoir": "sache sache sachions sachiez sachent",
    "vouloir": "veuille veuille voulions vouliez veuillent",
}
# Verbs in -er whose stem changes under stress: stressed stem, stem of the future.
_STRESSED: Mapping[str, tuple[str, str]] = {
    "acheter": ("achèt", "achèter"),
    "célébrer": ("célèbr", "célébrer"),
    "envoyer": ("envoi", "enverr"),
    "espérer": ("espèr", "espérer"),
    "essayer": ("essai", "essaier"),
    "nettoyer": ("nettoi", "nettoier"),
    "préférer": ("préfèr", "préférer"),
    "promener": ("promèn", "promèner"),
    "protéger": ("protèg", "protéger"),
    "rejeter": ("rejett", "rejetter"),
}


def conjugate(infinitive: str) -> Conjugation:
    """Every form of a French verb, from its infinitive."""
    present, participle, future_stem = _principal_parts(infinitive)
    stem = present[NOUS].removesuffix("ons") if infinitive != "être" else "ét"
    soft = stem  # manger, commencer: the e and the cedilla serve only before a and o
    if infinitive.endswith("ger"):
        soft = stem.removesuffix("e")
    elif infinitive.endswith("cer"):
        soft = stem.removesuffix("ç") + "c"
    imperfect = (stem + "ais", stem + "ait", soft + "ions", soft + "iez", stem + "aient")
    future = _persons([future_stem + ending for ending in ("ai", "a", "ons", "ez", "ont")])
    if infinitive in _IRREGULAR_SUBJUNCTIVE:
        subjunctive = _persons(_IRREGULAR_SUBJUNCTIVE[infinitive].split())
    else:
        strong = present[ILS].removesuffix("ent")
        nous, vous = imperfect[NOUS], imperfect[VOUS]
        subjunctive = (strong + "e", strong + "e", nous, vous, strong + "ent")
    agreeing = inflect(participle, "due" if participle == "dû" else participle + "e")
    return Conjugation(infinitive, present, imperfect, future, subjunctive, agreeing)


def _principal_parts(infinitive: str) -> tuple[Persons, str, str]:
    """The present, the participle and the stem of the future, which give all the rest."""
    stem = infinitive[:-2]
    if infinitive in _IRREGULAR:
        *present, participle, future = _IRREGULAR[infinitive].split()
        return _persons(present), participle, future
    if infinitive.endswith("er"):
        stressed, future = _STRESSED.get(infinitive, (stem, infinitive))
        open_stem = stem + "e" if stem.endswith("g") else re.sub("c$", "ç", stem)
        present = (f"{stressed}e", f"{stressed}e", f"{open_stem}ons", f"{stem}ez", f"{stressed}ent")
        return present, stem + "é", future
    if infinitive.endswith("ir"):
        present = _persons([stem + end for end in ("is", "it", "issons", "issez", "issent")])
        return present, stem + "i", infinitive
    present = _persons([stem + end for end in ("s", "", "ons", "ez", "ent")])
    return present, stem + "u", infinitive[:-1]


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
