"""Names, dates and set expressions, each with the words of both languages and their links."""

from typing import NamedTuple


class Name(NamedTuple):
    """A proper name: for every French word, `links` says which English word it renders."""

    english: str
    french: str
    links: str
    feminine: bool = False
    plural: bool = False


PEOPLE: tuple[Name, ...] = (
    Name("Paul", "Paul", "0"),
    Name("Peter", "Pierre", "0"),
    Name("John", "Jean", "0"),
    Name("Louis", "Louis", "0"),
    Name("Henry", "Henri", "0"),
    Name("Andrew", "André", "0"),
    Name("Mary", "Marie", "0", True),
    Name("Helen", "Hélène", "0", True),
    Name("Alice", "Alice", "0", True),
    Name("Sophie", "Sophie", "0", True),
    Name("Emma", "Emma", "0", True),
    Name("Claire", "Claire", "0", True),
)

# Names that take the definite article in both languages, written here without it. Their nouns
# are not in `nouns.py`, so they form no combination that could be held out.
ENTITIES: tuple[Name, ...] = (
    Name("European Economic Area", "zone économique européenne", "2 1 0", True),
    Name("European Union", "Union européenne", "1 0", True),
    Name("European Central Bank", "Banque centrale européenne", "2 1 0", True),
    Name("International Monetary Fund", "Fonds monétaire international", "2 1 0"),
    Name("Security Council", "Conseil de sécurité", "1 0 0"),
    Name("Supreme Court", "Cour suprême", "1 0", True),
    Name("Red Cross", "Croix-Rouge", "1", True),
    Name("United Nations", "Nations unies", "1 0", True, True),
    Name("World Bank", "Banque mondiale", "1 0", True),
)

# Countries take an article in French alone: France → la France.
COUNTRIES: tuple[Name, ...] = (
    Name("France", "France", "0", True),
    Name("Germany", "Allemagne", "0", True),
    Name("Italy", "Italie", "0", True),
    Name("Spain", "Espagne", "0", True),
    Name("Belgium", "Belgique", "0", True),
    Name("Greece", "Grèce", "0", True),
    Name("Hungary", "Hongrie", "0", True),
    Name("Japan", "Japon", "0"),
    Name("Canada", "Canada", "0"),
    Name("Portugal", "Portugal", "0"),
    Name("Brazil", "Brésil", "0"),
    Name("Denmark", "Danemark", "0"),
)
CITIES: tuple[Name, ...] = (
    Name("Paris", "Paris", "0"),
    Name("London", "Londres", "0"),
    Name("Brussels", "Bruxelles", "0"),
    Name("Athens", "Athènes", "0"),
    Name("Vienna", "Vienne", "0"),
    Name("Lisbon", "Lisbonne", "0"),
    Name("Geneva", "Genève", "0"),
    Name("Oslo", "Oslo", "0"),
)

MONTHS: tuple[tuple[str, str], ...] = (
    ("January", "janvier"),
    ("February", "février"),
    ("March", "mars"),
    ("April", "avril"),
    ("May", "mai"),
    ("June", "juin"),
    ("July", "juillet"),
    ("August", "août"),
    ("September", "septembre"),
    ("October", "octobre"),
    ("November", "novembre"),
    ("December", "décembre"),
)
NUMBERS: tuple[tuple[str, str], ...] = (
    ("two", "deux"),
    ("three", "trois"),
    ("four", "quatre"),
    ("five", "cinq"),
    ("six", "six"),
    ("seven", "sept"),
    ("eight", "huit"),
    ("nine", "neuf"),
    ("ten", "dix"),
    ("twelve", "douze"),
    ("twenty", "vingt"),
)
# English, French, links
Expression = tuple[str, str, str]
WEEKDAYS: tuple[Expression, ...] = (
    ("on Monday", "lundi", "1"),
    ("on Tuesday", "mardi", "1"),
    ("on Wednesday", "mercredi", "1"),
    ("on Thursday", "jeudi", "1"),
    ("on Friday", "vendredi", "1"),
    ("on Saturday", "samedi", "1"),
    ("on Sunday", "dimanche", "1"),
)
ANY_TIME: tuple[Expression, ...] = (
    ("in winter", "en hiver", "0 1"),
    ("in summer", "en été", "0 1"),
    ("in autumn", "en automne", "0 1"),
    ("in spring", "au printemps", "0 1"),
    ("at noon", "à midi", "0 1"),
    ("in the morning", "le matin", "1 2"),
    ("in the evening", "le soir", "1 2"),
    ("in the afternoon", "l' après-midi", "1 2"),
)
PAST_TIME: tuple[Expression, ...] = (
    ("yesterday", "hier", "0"),
    ("recently", "récemment", "0"),
    ("last year", "l' année dernière", "1 1 0"),
    ("last week", "la semaine dernière", "1 1 0"),
    ("last month", "le mois dernier", "1 1 0"),
    ("last night", "hier soir", "0 1"),
)
PRESENT_TIME: tuple[Expression, ...] = (
    ("today", "aujourd' hui", "0 0"),
    ("now", "maintenant", "0"),
    ("this year", "cette année", "0 1"),
    ("this week", "cette semaine", "0 1"),
    ("every day", "chaque jour", "0 1"),
    ("every week", "chaque semaine", "0 1"),
)
FUTURE_TIME: tuple[Expression, ...] = (
    ("tomorrow", "demain", "0"),
    ("soon", "bientôt", "0"),
    ("later", "plus tard", "0 0"),
    ("next year", "l' année prochaine", "1 1 0"),
    ("next week", "la semaine prochaine", "1 1 0"),
    ("next month", "le mois prochain", "1 1 0"),
)
MANNER: tuple[Expression, ...] = (
    ("quickly", "rapidement", "0"),
    ("slowly", "lentement", "0"),
    ("quietly", "tranquillement", "0"),
    ("patiently", "patiemment", "0"),
    ("carefully", "soigneusement", "0"),
    ("calmly", "calmement", "0"),
    ("bravely", "courageusement", "0"),
    ("easily", "facilement", "0"),
    ("again", "de nouveau", "0 0"),
)
# Adverbs that stand before the English verb and after the French one.
MIDDLE: tuple[tuple[str, str], ...] = (
    ("often", "souvent"),
    ("always", "toujours"),
    ("rarely", "rarement"),
    ("sometimes", "parfois"),
    ("also", "aussi"),
    ("probably", "probablement"),
    ("finally", "finalement"),
)
MIDDLE_NEGATED = MIDDLE[:2]
