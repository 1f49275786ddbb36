"""The common nouns, by kind: what a verb may act on and an adjective describe."""

from collections.abc import Mapping
from typing import NamedTuple

from saccade.data.lingua.words.adjectives import ADJECTIVES, Adjective
from saccade.data.lingua.words.morphology import english_plural, french_plural


class Noun(NamedTuple):
    """A noun of both languages. A `mass` noun has no plural and takes the partitive."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kind: str
    mass: bool
    adjectives: tuple[Adjective, ...]


_ENGLISH_PLURALS: Mapping[str, str] = {
    "child": "children",
    "crisis": "crises",
    "knife": "knives",
    "man": "men",
    "mouse": "mice",
    "wife": "wives",
    "wolf": "wolves",
    "woman": "women",
}
_FRENCH_PLURALS: Mapping[str, str] = {"festival": "festivals"}

# kind: masculine nouns, feminine nouns; English=French
_COUNTABLE: Mapping[str, tuple[str, str]] = {
    "person": (
        "man=homme boy=garçon child=enfant friend=ami minister=ministre president=président "
        "doctor=médecin teacher=professeur student=étudiant lawyer=avocat judge=juge "
        "farmer=agriculteur baker=boulanger neighbour=voisin writer=écrivain artist=artiste "
        "soldier=soldat king=roi brother=frère father=père uncle=oncle cousin=cousin "
        "journalist=journaliste engineer=ingénieur guest=invité hero=héros",
        "woman=femme girl=fille mother=mère sister=sœur aunt=tante queen=reine wife=épouse "
        "singer=chanteuse nurse=infirmière",
    ),
    "group": (
        "government=gouvernement parliament=parlement council=conseil committee=comité "
        "party=parti ministry=ministère club=club",
        "commission=commission company=entreprise bank=banque team=équipe family=famille "
        "university=université association=association army=armée",
    ),
    "animal": (
        "dog=chien cat=chat horse=cheval bird=oiseau wolf=loup bear=ours rabbit=lapin lion=lion",
        "cow=vache mouse=souris hen=poule goat=chèvre",
    ),
    "food": (
        "cake=gâteau egg=œuf sandwich=sandwich biscuit=biscuit",
        "apple=pomme pear=poire orange=orange tomato=tomate carrot=carotte",
    ),
    "text": (
        "agreement=accord treaty=traité report=rapport book=livre article=article "
        "contract=contrat document=document poem=poème message=message newspaper=journal",
        "letter=lettre law=loi resolution=résolution directive=directive proposal=proposition "
        "declaration=déclaration",
    ),
    "place": (
        "garden=jardin village=village market=marché museum=musée hotel=hôtel castle=château "
        "restaurant=restaurant office=bureau hospital=hôpital theatre=théâtre",
        "house=maison town=ville school=école church=église factory=usine library=bibliothèque "
        "station=gare forest=forêt street=rue kitchen=cuisine",
    ),
    "height": ("wall=mur tree=arbre bridge=pont", "tower=tour mountain=montagne"),
    "thing": (
        "knife=couteau hat=chapeau coat=manteau boat=bateau computer=ordinateur bag=sac "
        "telephone=téléphone instrument=instrument umbrella=parapluie bicycle=vélo",
        "car=voiture table=table chair=chaise key=clé lamp=lampe bottle=bouteille watch=montre "
        "shirt=chemise machine=machine box=boîte",
    ),
    "idea": (
        "problem=problème project=projet risk=risque objective=objectif system=système "
        "principle=principe",
        "question=question idea=idée policy=politique decision=décision reform=réforme "
        "strategy=stratégie measure=mesure",
    ),
    "event": (
        "debate=débat concert=concert congress=congrès festival=festival",
        "conference=conférence election=élection war=guerre crisis=crise exhibition=exposition "
        "ceremony=cérémonie",
    ),
}
_MASS: Mapping[str, tuple[str, str]] = {
    "food": ("bread=pain cheese=fromage rice=riz butter=beurre sugar=sucre", "meat=viande"),
    "drink": ("milk=lait coffee=café tea=thé wine=vin juice=jus", "water=eau beer=bière"),
}


def _read(table: Mapping[str, tuple[str, str]], *, mass: bool) -> list[Noun]:
    nouns: list[Noun] = []
    for kind, genders in table.items():
        adjectives = tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
        for feminine, entries in zip((False, True), genders):
            for entry in entries.split():
                english, french = entry.split("=")
                plural = _ENGLISH_PLURALS.get(english, english_plural(english))
                pluriel = _FRENCH_PLURALS.get(french, french_plural(french))
                nouns.append(
                    Noun(english, plural, french, pluriel, feminine, kind, mass, adjectives)
                )
    return nouns


NOUNS: tuple[Noun, ...] = (*_read(_COUNTABLE, mass=False), *_read(_MASS, mass=True))
NOUN: Mapping[str, Noun] = {noun.english: noun for noun in NOUNS}
BY_KIND: Mapping[str, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS if noun.kind == kind)
    for kind in {noun.kind: None for noun in NOUNS}
}
