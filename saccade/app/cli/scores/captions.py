"""A captioner's scores as small tables: its words, their content, where it looked, each group."""

from collections.abc import Iterator
from typing import Any

from saccade.app.cli.output import show_table, tell

Row = tuple[str, ...]
POINTING: Row = ("", "words", "in the box", "near it", "on pixels", "mass in box", "by chance")


def print_caption_scores(found: dict[str, Any]) -> None:
    """What `evaluate_captions` found, for people; programs read it as JSON."""
    told = f"{found['images']:,} images with {found['references']:,} references"
    different = f"{found['different_captions']:,} different captions"
    tell(f"{found['split']}: {told}, beam {found['beam']}, {found['seconds']:.1f} s")
    _table("against all references", _words(found))
    tell(f"\n{different}, perplexity of the references {found['perplexity']:.4g}")
    if "exact" in found:
        _table("content by number of objects", _content(found))
    if "pointing" in found:
        _table("attention points", _pointing(found))
    if found.get("pointing", {}).get("by_word"):
        _table("its own, by word", _by_word(found["pointing"]["by_word"]))
    if "reasons" in found:
        reports = found["reasons"]
        # A user's data have one report, shapes one for each of their two tests.
        by_world = {found["split"]: reports} if "outcomes" in reports else reports
        _table("how the groups fare", _groups(by_world))
        _table("at the groups' words", _reasons(by_world))
    if "note" in found:
        tell(f"\n{found['note']}")


def _table(title: str, rows: Iterator[Row]) -> None:
    """Rows under the first of them, numbers to the right."""
    (_, *names), *others = rows
    tell("")
    show_table(others, head=(title, *names))


def _words(found: dict[str, Any]) -> Iterator[Row]:
    names = {f"bleu_{n}": f"BLEU-{n}" for n in range(1, 5)}
    names |= {"cider_d": "CIDEr-D", "rouge_l": "ROUGE-L", "meteor_by_nltk": "METEOR (nltk)"}
    there = [name for name in names if name in found]
    yield "", *(names[name] for name in there)
    yield "its own captions", *(f"{found[name]:.1f}" for name in there)


def _content(found: dict[str, Any]) -> Iterator[Row]:
    yield "", "all", *found["exact_by_objects"]
    for name, meaning in (("exact", "says only what is so"), ("complete", "and leaves out none")):
        by_objects = found[f"{name}_by_objects"].values()
        yield f"{name}: {meaning}", *(f"{share:.3f}" for share in (found[name], *by_objects))


def _pointing(found: dict[str, Any]) -> Iterator[Row]:
    yield POINTING
    for name, whose in (("pointing", "its own captions"), ("pointing_given", "given captions")):
        yield whose, *_game(found[name])


def _game(game: dict[str, Any]) -> Row:
    shares = (game.get(name) for name in ("hits", "hits_near", "hits_on_pixels", "mass", "chance"))
    return f"{game['count']:,}", *map(_share, shares)


def _by_word(by_word: dict[str, Any]) -> Iterator[Row]:
    yield POINTING
    for word, game in by_word.items():
        yield word, *_game(game)


def _groups(by_world: dict[str, Any]) -> Iterator[Row]:
    yield "", "images", "right", "wrong", "neutral"
    for world, report in by_world.items():
        fared = dict(report["outcomes"])
        if "against_the_bias" in report:
            fared["against the bias"] = report["against_the_bias"]
        for name, one in fared.items():
            shares = (_share(one[kind]) for kind in ("right", "wrong", "neutral"))
            yield f"{world}: {name}", f"{one['images']:,}", *shares


def _reasons(by_world: dict[str, Any]) -> Iterator[Row]:
    yield "", "error", "divergence", "ratio", "true ratio", "points", "if given"
    for world, report in by_world.items():
        names = ("error", "divergence", "ratio", "true_ratio")
        games = (report.get(name, {}).get("hits") for name in ("pointing", "pointing_given"))
        yield world, *(_share(report[name]) for name in names), *map(_share, games)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
