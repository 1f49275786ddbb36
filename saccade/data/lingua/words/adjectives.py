"""The adjectives: what they may describe, and on which side of the French noun they stand."""

from typing import NamedTuple

from saccade.data.lingua.words.morphology import Forms, inflect


class Adjective(NamedTuple):
    """An adjective. Several before one English noun stand in the order of their ranks."""

    english: str
    forms: Forms
    liaison: str  # the masculine singular before a vowel, where it differs
    before: bool  # whether it precedes the French noun
    rank: int  # 0 size and age, 1 quality, 2 colour, 3 origin, 4 field
    kinds: frozenset[str]

    @property
    def gradable(self) -> bool:
        """Whether "very" suits it."""
        return self.rank <= 1 and self.english != "new"


_LIVING = "person animal"
_SOLID = "thing place height"
_MIND = "idea text event"


def _before(
    english: str, french: str, kinds: str, feminine: str = "", liaison: str = ""
) -> Adjective:
    forms = inflect(french, feminine)
    return Adjective(english, forms, liaison, True, 0, frozenset(kinds.split()))


def _after(english: str, french: str, rank: int, kinds: str, feminine: str = "") -> Adjective:
    forms = inflect(french, feminine)
    return Adjective(english, forms, "", False, rank, frozenset(kinds.split()))


_COLOURED = "thing animal"
_ORIGINAL = "person group text food thing place"
_FIELD = "group idea event text"

ADJECTIVES: tuple[Adjective, ...] = (
    _before("big", "grand", f"{_LIVING} {_SOLID} group"),
    _before("small", "petit", f"{_LIVING} {_SOLID} group"),
    _before("good", "bon", f"{_LIVING} {_MIND} food drink", "bonne"),
    _before("bad", "mauvais", f"{_MIND} food drink"),
    _before("beautiful", "beau", f"{_LIVING} {_SOLID}", "belle", "bel"),
    _before("old", "vieux", f"{_LIVING} {_SOLID} text", "vieille", "vieil"),
    _before("new", "nouveau", f"{_SOLID} {_MIND} group", "nouvelle", "nouvel"),
    _before("young", "jeune", _LIVING),
    _before("pretty", "joli", _SOLID),
    _before("long", "long", "text event", "longue"),
    _before("high", "haut", "height"),
    _after("important", "important", 1, f"{_MIND} person group"),
    _after("difficult", "difficile", 1, _MIND),
    _after("simple", "simple", 1, _MIND),
    _after("useful", "utile", 1, "text idea thing animal"),
    _after("dangerous", "dangereux", 1, "animal place idea person"),
    _after("expensive", "cher", 1, "thing food drink"),
    _after("happy", "heureux", 1, _LIVING),
    _after("sad", "triste", 1, _LIVING),
    _after("tired", "fatigué", 1, _LIVING),
    _after("furious", "furieux", 1, _LIVING),
    _after("honest", "honnête", 1, "person"),
    _after("intelligent", "intelligent", 1, _LIVING),
    _after("brave", "courageux", 1, _LIVING),
    _after("calm", "calme", 1, f"{_LIVING} place"),
    _after("polite", "poli", 1, "person"),
    _after("rich", "riche", 1, "person group"),
    _after("poor", "pauvre", 1, "person"),
    _after("famous", "célèbre", 1, "person group text place"),
    _after("strong", "fort", 1, f"{_LIVING} group"),
    _after("weak", "faible", 1, f"{_LIVING} group"),
    _after("sick", "malade", 1, _LIVING),
    _after("curious", "curieux", 1, _LIVING),
    _after("serious", "sérieux", 1, f"{_MIND} person"),
    _after("patient", "patient", 1, "person"),
    _after("lazy", "paresseux", 1, _LIVING),
    _after("loyal", "loyal", 1, _LIVING),
    _after("wild", "sauvage", 1, "animal"),
    _after("hot", "chaud", 1, "food drink"),
    _after("cold", "froid", 1, "food drink"),
    _after("fresh", "frais", 1, "food drink", "fraîche"),
    _after("delicious", "délicieux", 1, "food drink"),
    _after("empty", "vide", 1, _SOLID),
    _after("clean", "propre", 1, _SOLID),
    _after("dirty", "sale", 1, _SOLID),
    _after("heavy", "lourd", 1, "thing"),
    _after("modern", "moderne", 1, _SOLID),
    _after("quiet", "tranquille", 1, f"{_LIVING} place"),
    _after("dark", "sombre", 1, _SOLID),
    _after("clear", "clair", 1, "text idea"),
    _after("strange", "étrange", 1, f"{_LIVING} {_SOLID} {_MIND}"),
    _after("necessary", "nécessaire", 1, _MIND),
    _after("secret", "secret", 1, _MIND, "secrète"),
    _after("complete", "complet", 1, "text", "complète"),
    _after("urgent", "urgent", 1, "idea event text"),
    _after("recent", "récent", 1, _MIND),
    _after("effective", "efficace", 1, "idea group"),
    _after("active", "actif", 1, f"{_LIVING} group"),
    _after("red", "rouge", 2, _COLOURED),
    _after("blue", "bleu", 2, "thing"),
    _after("green", "vert", 2, "thing"),
    _after("white", "blanc", 2, _COLOURED, "blanche"),
    _after("black", "noir", 2, _COLOURED),
    _after("yellow", "jaune", 2, "thing"),
    _after("grey", "gris", 2, _COLOURED),
    _after("European", "européen", 3, f"{_ORIGINAL} idea event"),
    _after("French", "français", 3, f"{_ORIGINAL} drink"),
    _after("German", "allemand", 3, _ORIGINAL),
    _after("Italian", "italien", 3, f"{_ORIGINAL} drink"),
    _after("Spanish", "espagnol", 3, f"{_ORIGINAL} drink"),
    _after("Japanese", "japonais", 3, _ORIGINAL),
    _after("American", "américain", 3, _ORIGINAL),
    _after("economic", "économique", 4, _FIELD),
    _after("political", "politique", 4, _FIELD),
    _after("social", "social", 4, _FIELD),
    _after("legal", "juridique", 4, _FIELD),
    _after("international", "international", 4, _FIELD),
    _after("national", "national", 4, _FIELD),
    _after("public", "public", 4, "group event", "publique"),
    _after("financial", "financier", 4, _FIELD),
    _after("military", "militaire", 4, _FIELD),
    _after("scientific", "scientifique", 4, _FIELD),
    _after("annual", "annuel", 4, "event text"),
    _after("official", "officiel", 4, "text event"),
)
