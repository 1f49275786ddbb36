"""The verbs: who does what to which kind of thing, and how each language builds it."""

from collections.abc import Mapping
from typing import NamedTuple

from saccade.data.lingua.words.morphology import Conjugation, EnglishVerb, conjugate, english_verb
from saccade.data.lingua.words.nouns import BY_KIND, Noun


class Verb(NamedTuple):
    """A verb of both languages.

    `particle` follows the English verb ("look for"); `preposition` follows the French one
    (répondre à) and then rules out passives and object relatives. `moves` takes être. A `state`
    has no progressive, and its English past is the French imperfect. `loves` marks the verbs
    after which a bare noun is meant in general: likes bread → aime le pain.
    """

    english: EnglishVerb
    french: Conjugation
    subjects: frozenset[str]
    objects: tuple[Noun, ...]
    particle: str = ""
    preposition: str = ""
    moves: bool = False
    reflexive: bool = False
    state: bool = False
    loves: bool = False

    @property
    def name(self) -> str:
        """The English dictionary form, particle included."""
        return f"{self.english.base} {self.particle}".rstrip()

    @property
    def direct(self) -> bool:
        """Whether both languages give it a plain direct object."""
        return not self.particle and not self.preposition


_WHO = "person"
_WHOEVER = "person group"
_LIVING = "person animal"


def _verb(english: str, french: str, subjects: str, objects: str = "", **traits: bool) -> Verb:
    """Read "write wrote written" and "look_for" and "répondre_à"."""
    forms, _, particle = english.partition("_")
    base, *irregular = forms.split()
    if particle:
        particle, *irregular = particle.split()
    infinitive, _, preposition = french.partition("_")
    return Verb(
        english_verb(base, *irregular),
        conjugate(infinitive),
        frozenset(subjects.split()),
        tuple(noun for kind in objects.split() for noun in BY_KIND[kind]),
        particle,
        preposition,
        **traits,
    )


INTRANSITIVE: tuple[Verb, ...] = (
    _verb("sleep slept", "dormir", _LIVING),
    _verb("work", "travailler", _WHOEVER),
    _verb("sing sang sung", "chanter", _WHO),
    _verb("dance", "danser", _WHO),
    _verb("smile", "sourire", _WHO),
    _verb("laugh", "rire", _WHO),
    _verb("cry", "pleurer", _WHO),
    _verb("speak spoke spoken", "parler", _WHO),
    _verb("swim swam swum", "nager", _LIVING),
    _verb("run ran run", "courir", _LIVING),
    _verb("hesitate", "hésiter", _WHOEVER),
    _verb("vote", "voter", _WHO),
    _verb("succeed", "réussir", _WHOEVER),
    _verb("react", "réagir", _WHOEVER),
    _verb("travel", "voyager", _WHO),
    _verb("arrive", "arriver", "person animal text", moves=True),
    _verb("leave left", "partir", _LIVING, moves=True),
    _verb("fall fell fallen", "tomber", "person animal thing", moves=True),
    _verb("return", "revenir", _LIVING, moves=True),
    _verb("rest", "reposer", _LIVING, reflexive=True, moves=True),
    _verb("wake woke woken", "réveiller", _LIVING, reflexive=True, moves=True),
    _verb("hurry", "dépêcher", _WHO, reflexive=True, moves=True),
    _verb("stop", "arrêter", _LIVING, reflexive=True, moves=True),
    _verb("walk", "promener", _WHO, reflexive=True, moves=True),
    _verb("meet met", "réunir", "group", reflexive=True, moves=True),
    _verb("disappear", "disparaître", "person animal text thing idea"),
    _verb("change", "changer", "person group idea text place"),
    _verb("exist", "exister", "idea text event place height", state=True),
    _verb("continue", "continuer", "event"),
)

TRANSITIVE: tuple[Verb, ...] = (
    _verb("eat ate eaten", "manger", _LIVING, "food"),
    _verb("drink drank drunk", "boire", _LIVING, "drink"),
    _verb("taste", "goûter", _WHO, "food drink"),
    _verb("prepare", "préparer", _WHO, "food event text"),
    _verb("buy bought", "acheter", _WHOEVER, "food drink thing"),
    _verb("sell sold", "vendre", _WHOEVER, "food drink thing animal"),
    _verb("bring brought", "apporter", _WHO, "food drink thing text"),
    _verb("carry", "porter", _WHO, "thing"),
    _verb("take took taken", "prendre", _WHO, "thing text"),
    _verb("hide hid hidden", "cacher", _WHO, "thing text"),
    _verb("break broke broken", "casser", _LIVING, "thing"),
    _verb("repair", "réparer", _WHO, "thing"),
    _verb("wash", "laver", _WHO, "thing animal"),
    _verb("lose lost", "perdre", _WHO, "thing text"),
    _verb("find found", "trouver", _LIVING, "thing text animal food"),
    _verb("look_for", "chercher", _LIVING, "thing text animal person"),
    _verb("look_at", "regarder", _LIVING, "person animal place height thing"),
    _verb("see saw seen", "voir", _LIVING, "person animal place height thing"),
    _verb("hear heard", "entendre", _LIVING, "person animal"),
    _verb("listen_to", "écouter", _WHO, "person event"),
    _verb("wait_for", "attendre", _LIVING, "person animal text"),
    _verb("follow", "suivre", _LIVING, "person animal"),
    _verb("help", "aider", _WHO, "person group animal"),
    _verb("invite", "inviter", _WHOEVER, "person"),
    _verb("thank", "remercier", _WHOEVER, "person"),
    _verb("feed fed", "nourrir", _WHO, "animal person"),
    _verb("protect", "protéger", "person group animal", "person animal place"),
    _verb("draw drew drawn", "dessiner", _WHO, "animal place height person"),
    _verb("paint", "peindre", _WHO, "place height animal"),
    _verb("photograph", "photographier", _WHO, "animal place height person"),
    _verb("build built", "construire", _WHOEVER, "place height"),
    _verb("visit", "visiter", _WHO, "place"),
    _verb("cross", "traverser", _LIVING, "place"),
    _verb("discover", "découvrir", _WHOEVER, "place idea text"),
    _verb("write wrote written", "écrire", _WHO, "text"),
    _verb("translate", "traduire", _WHO, "text"),
    _verb("sign", "signer", _WHOEVER, "text"),
    _verb("publish", "publier", _WHOEVER, "text"),
    _verb("receive", "recevoir", _WHOEVER, "text person"),
    _verb("send sent", "envoyer", _WHOEVER, "text thing"),
    _verb("adopt", "adopter", _WHOEVER, "text idea"),
    _verb("approve", "approuver", _WHOEVER, "text idea"),
    _verb("reject", "rejeter", _WHOEVER, "text idea"),
    _verb("accept", "accepter", _WHOEVER, "text idea"),
    _verb("examine", "examiner", _WHOEVER, "text idea"),
    _verb("modify", "modifier", _WHOEVER, "text idea"),
    _verb("propose", "proposer", _WHOEVER, "text idea"),
    _verb("study", "étudier", _WHO, "text idea animal"),
    _verb("explain", "expliquer", _WHOEVER, "text idea"),
    _verb("criticise", "critiquer", _WHOEVER, "text idea person group"),
    _verb("defend", "défendre", _WHOEVER, "idea person group"),
    _verb("support", "soutenir", _WHOEVER, "idea person group"),
    _verb("finance", "financer", "group", "event group idea"),
    _verb("create", "créer", _WHOEVER, "group event"),
    _verb("lead led", "diriger", _WHO, "group"),
    _verb("organise", "organiser", _WHOEVER, "event"),
    _verb("cancel", "annuler", _WHOEVER, "event"),
    _verb("announce", "annoncer", _WHOEVER, "event idea"),
    _verb("celebrate", "célébrer", _WHOEVER, "event"),
    _verb("know knew known", "connaître", _WHO, "person place text", state=True),
    _verb("understand understood", "comprendre", _WHO, "text idea", state=True),
    _verb("like", "aimer", _LIVING, "food drink person animal place", state=True, loves=True),
    _verb("hate", "détester", _LIVING, "food drink animal idea", state=True, loves=True),
    _verb("prefer preferred", "préférer", _LIVING, "food drink place", state=True, loves=True),
    _verb("speak_to spoke spoken", "parler_à", _WHO, "person animal"),
    _verb("talk_about", "parler_de", _WHOEVER, "idea event person place"),
    _verb("think_about thought", "penser_à", _WHO, "idea event person place"),
    _verb("answer", "répondre_à", _WHOEVER, "person text"),
    _verb("obey", "obéir_à", _LIVING, "person"),
    _verb("attend", "assister_à", _WHO, "event"),
    _verb("participate_in", "participer_à", _WHOEVER, "event"),
    _verb("enter", "entrer_dans", _LIVING, "place", moves=True),
)

# Verbs that need a place: the English preposition is their particle.
PLACED: tuple[Verb, ...] = (
    _verb("go_to went gone", "aller_à", _LIVING, moves=True),
    _verb("come_from came come", "venir_de", _LIVING, moves=True),
    _verb("live_in", "habiter_dans", _LIVING, state=True),
)

# Verbs before an infinitive; the French preposition renders "to".
CATENATIVE: tuple[Verb, ...] = (
    _verb("want", "vouloir", _LIVING, state=True),
    _verb("hope", "espérer", _WHOEVER, state=True),
    _verb("try", "essayer_de", _LIVING),
    _verb("decide", "décider_de", _WHOEVER),
    _verb("refuse", "refuser_de", _LIVING),
    _verb("begin began begun", "commencer_à", _WHOEVER),
    _verb("promise", "promettre_de", _WHOEVER),
)
MODALS: Mapping[str, Conjugation] = {"can": conjugate("pouvoir"), "must": conjugate("devoir")}

# Verbs that report a clause; never negated, for that would call for the subjunctive.
SAYING: tuple[Verb, ...] = (
    _verb("say said", "dire", _WHOEVER),
    _verb("declare", "déclarer", _WHOEVER),
    _verb("explain", "expliquer", _WHOEVER),
    _verb("announce", "annoncer", _WHOEVER),
    _verb("think thought", "penser", _WHO, state=True),
    _verb("believe", "croire", _WHO, state=True),
    _verb("know knew known", "savoir", _WHO, state=True),
    _verb("hope", "espérer", _WHO, state=True),
)
WEATHER: tuple[Verb, ...] = (_verb("rain", "pleuvoir", ""), _verb("snow", "neiger", ""))

KINDS = tuple(BY_KIND)


def _doing(verbs: tuple[Verb, ...]) -> Mapping[str, tuple[Verb, ...]]:
    """The verbs that each kind of subject can do."""
    return {kind: tuple(verb for verb in verbs if kind in verb.subjects) for kind in KINDS}


INTRANSITIVE_OF = _doing(INTRANSITIVE)
TRANSITIVE_OF = _doing(TRANSITIVE)
DIRECT_OF = _doing(tuple(verb for verb in TRANSITIVE if verb.direct))
CATENATIVE_OF = _doing(CATENATIVE)
# The verbs that can be done to each noun, in a relative clause or in the passive.
DONE_TO: Mapping[str, tuple[Verb, ...]] = {
    noun.english: tuple(verb for verb in TRANSITIVE if verb.direct and noun in verb.objects)
    for nouns in BY_KIND.values()
    for noun in nouns
}
AVOIR, ETRE = conjugate("avoir"), conjugate("être")
