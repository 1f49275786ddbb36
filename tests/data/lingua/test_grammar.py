"""Lingua's grammar, construction by construction: the text and who renders whom."""

from collections.abc import Callable

import pytest

from saccade.data.lingua import AlignedPair, align
from saccade.data.lingua.adverbials import in_month, on_date, years_ago
from saccade.data.lingua.noun_phrases import NounPhrase, Quality, country, described, entity
from saccade.data.lingua.tokens import Mot, Phrase, Word, de, mark, que
from saccade.data.lingua.verb_groups import Style, Tense, active, modal, passive, to_be
from saccade.data.lingua.words.lexicon import Verb, adjectives, expressions, nouns, verbs
from saccade.data.lingua.words.morphology import ILS, JE, NOUS, Agreement, conjugate
from saccade.data.tokens.words import words

ADJECTIVE = {adjective.english: adjective for adjective in adjectives()}
NOUN = {noun.english: noun for noun in nouns()}
VERB = {verb.name: verb for verb in (*verbs("intransitive"), *verbs("transitive"))}
HE, SHE, THEY = Agreement(), Agreement(feminine=True), Agreement(ILS)


def noun(text: str, determined: str = "", *, plural: bool = False) -> NounPhrase:
    """A phrase from its English adjectives and noun."""
    *adjectives, head = text.split()
    qualities = tuple(Quality(ADJECTIVE[a]) for a in adjectives)
    return described(NOUN[head], plural=plural, determined=determined, qualities=qualities)


def preposition(english: str, french: str) -> Phrase:
    word = Word(english, "preposition")
    return Phrase([word], [de(word) if french == "de" else Mot(french, word)])


def sentence(*phrases: Phrase) -> AlignedPair:
    whole = Phrase([], [])
    for phrase in (*phrases, mark(".")):
        whole.add(phrase)
    return align(whole)


def french(*phrases: Phrase) -> str:
    return sentence(*phrases).target.removesuffix(".")


def rendered(pair: AlignedPair) -> list[tuple[str, str]]:
    """Each target word with the source word it renders."""
    source, target = words(pair.source), words(pair.target)
    return [(target[j], source[i]) for j, i in sorted((j, i) for i, j in pair.sure)]


def test_the_lecture_sentence_is_translated_and_aligned() -> None:
    pair = sentence(
        noun("agreement", "the").phrase,
        preposition("on", "sur"),
        entity(expressions("entities")[0]).phrase,
        passive(VERB["sign"], HE, Style(Tense.PAST)),
        in_month(8, 1992),
    )
    assert pair.source == "The agreement on the European Economic Area was signed in August 1992."
    assert pair.target == "L'accord sur la zone économique européenne a été signé en août 1992."
    assert rendered(pair) == [
        ("L'", "The"),
        ("accord", "agreement"),
        ("sur", "on"),
        ("la", "the"),
        ("zone", "Area"),
        ("économique", "Economic"),
        ("européenne", "European"),
        ("a", "was"),
        ("été", "was"),
        ("signé", "signed"),
        ("en", "in"),
        ("août", "August"),
        ("1992", "1992"),
        (".", "."),
    ]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        (noun("man", "the"), "L'homme"),
        (noun("hero", "the"), "Le héros"),
        (noun("old man", "this"), "Ce vieil homme"),
        (noun("man", "this"), "Cet homme"),
        (noun("old man", "these", plural=True), "Ces vieux hommes"),
        (noun("beautiful bird", "a"), "Un bel oiseau"),
        (noun("new school", "a"), "Une nouvelle école"),
        (noun("school", "my"), "Mon école"),
        (noun("small school", "my"), "Ma petite école"),
        (noun("old letter", "some", plural=True), "De vieilles lettres"),
        (noun("red car", "some", plural=True), "Des voitures rouges"),
        (noun("bread", "some"), "Du pain"),
        (noun("water"), "De l'eau"),
        (noun("meat"), "De la viande"),
        (noun("European economic policy", "the"), "La politique économique européenne"),
        (noun("big white horse", "many", plural=True), "Beaucoup de grands chevaux blancs"),
        (noun("article", "many", plural=True), "Beaucoup d'articles"),
        (noun("house", "all", plural=True), "Toutes les maisons"),
        (country(expressions("countries")[1]), "L'Allemagne"),
    ],
)
def test_a_noun_phrase_agrees_and_elides(phrase: NounPhrase, expected: str) -> None:
    assert french(phrase.phrase) == expected


def test_of_the_contracts_and_keeps_the_article_as_possible() -> None:
    pair = sentence(
        noun("house", "the").phrase, preposition("of", "de"), noun("minister", "the").phrase
    )
    assert pair.target == "La maison du ministre."
    of, the, contracted = 2, 3, 2
    assert (of, contracted) in pair.sure
    assert (the, contracted) not in pair.sure
    assert (the, contracted) in pair.possible


@pytest.mark.parametrize(
    ("verb", "subject", "style", "expected"),
    [
        (VERB["eat"], HE, Style(Tense.PRESENT, "not"), "Ne mange pas"),
        (VERB["like"], HE, Style(Tense.PRESENT, "not"), "N'aime pas"),
        (
            VERB["eat"],
            HE,
            Style(Tense.PAST, "not", expressions("middle")[0]),
            "N'a pas souvent mangé",
        ),
        (VERB["eat"], Agreement(NOUS), Style(Tense.PRESENT), "Mangeons"),
        (VERB["eat"], Agreement(NOUS), Style(Tense.IMPERFECT), "Mangions"),
        (VERB["arrive"], SHE, Style(Tense.PAST), "Est arrivée"),
        (VERB["arrive"], THEY, Style(Tense.PAST, "never"), "Ne sont jamais arrivés"),
        (VERB["write"], HE, Style(Tense.PAST, preceding=SHE), "A écrite"),
        (VERB["buy"], THEY, Style(Tense.FUTURE), "Achèteront"),
        (VERB["rest"], Agreement(JE), Style(Tense.PRESENT), "Me repose"),
        (VERB["stop"], SHE, Style(Tense.PAST, "not"), "Ne s'est pas arrêtée"),
        (VERB["know"], HE, Style(Tense.PAST), "Connaissait"),
        (VERB["take"], HE, Style(Tense.PRESENT, subjunctive=True), "Prenne"),
        (VERB["arrive"], SHE, Style(Tense.PAST, subjunctive=True), "Soit arrivée"),
    ],
)
def test_a_verb_group_is_conjugated(
    verb: Verb, subject: Agreement, style: Style, expected: str
) -> None:
    assert french(active(verb, subject, style)) == expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (
            lambda: active(VERB["eat"], HE, Style(Tense.PRESENT, "not")),
            "Ne←not mange←eat pas←not",
        ),
        (lambda: active(VERB["eat"], HE, Style(Tense.PAST)), "A←Ate mangé←Ate"),
        (lambda: active(VERB["eat"], HE, Style(Tense.PERFECT)), "A←Has mangé←eaten"),
        (lambda: active(VERB["eat"], HE, Style(Tense.FUTURE)), "Mangera←eat"),
        (lambda: passive(VERB["sign"], SHE, Style(Tense.FUTURE)), "Sera←be signée←signed"),
        (lambda: to_be(HE, Style(Tense.PAST)), "Était←Was"),
        (lambda: modal("can", HE, negated=True), "Ne←Cannot peut←Cannot pas←Cannot"),
        (lambda: years_ago(expressions("numbers")[0]), "Il←ago y←ago a←ago deux←Two ans←years"),
        (lambda: on_date(1, 5, 1992), "Le←On 1er←1 mai←May 1992←1992"),
    ],
)
def test_a_group_links_each_french_word_to_what_it_renders(
    group: Callable[[], Phrase], expected: str
) -> None:
    links = rendered(sentence(group()))[:-1]
    assert " ".join(f"{target}←{source}" for target, source in links) == expected


def test_possible_links_name_the_auxiliaries() -> None:
    pair = sentence(active(VERB["eat"], HE, Style(Tense.FUTURE)))
    will, eat, mangera = 0, 1, 0
    assert (eat, mangera) in pair.sure
    assert (will, mangera) in set(pair.possible) - set(pair.sure)


def test_conjunctions_elide() -> None:
    because, he, if_ = (Word(text, "conjunction") for text in ("because", "he", "if"))
    assert french(Phrase([because, he], [que(because), Mot("il", he)])) == "Qu'il"
    assert french(Phrase([if_, he], [Mot("si", if_), Mot("il", he)])) == "S'il"
    assert french(Phrase([if_, he], [Mot("si", if_), Mot("elle", he)])) == "Si elle"


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("être", "suis était sera soit été"),
        ("avoir", "ai avait aura ait eu"),
        ("aller", "vais allait ira aille allé"),
        ("commencer", "commence commençait commencera commence commencé"),
        ("choisir", "choisis choisissait choisira choisisse choisi"),
        ("vendre", "vends vendait vendra vende vendu"),
        ("recevoir", "reçois recevait recevra reçoive reçu"),
        ("envoyer", "envoie envoyait enverra envoie envoyé"),
        ("protéger", "protège protégeait protégera protège protégé"),
    ],
)
def test_a_french_verb_is_conjugated(infinitive: str, forms: str) -> None:
    verb = conjugate(infinitive)
    shown = [verb.present[0], verb.imperfect[1], verb.future[1], verb.subjunctive[1]]
    assert " ".join([*shown, verb.participle[0]]) == forms
