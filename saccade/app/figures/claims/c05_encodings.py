"""C5: encodings of position side by side, the rejected ones too."""

from collections.abc import Callable

import torch

from saccade.app.figures.claim import LectureClaim
from saccade.app.figures.finding import Finding, HeatPanel, LinePanel
from saccade.app.figures.workshop import Workshop
from saccade.app.look.draw.chart import Mark
from saccade.blocks.positions import ENCODINGS, Encoding

WIDTH, SHOWN, LONG = 16, 32, 512
SHORT, PLACE = 10, 5  # a short sentence, and a position in it


def properties(encoding: Encoding) -> dict[str, float]:
    """What an encoding is asked for, as numbers over a sentence of 512 words.

    The largest value; the smallest distance of two positions; how far position 5 is from itself in
    a sentence of ten words; the smallest step over the largest.
    """
    table = encoding(torch.arange(LONG).double(), WIDTH)  # (T, D)
    short = encoding(torch.arange(SHORT).double(), WIDTH)
    apart = torch.cdist(table, table) + torch.full((LONG,), torch.inf).diag().nan_to_num(posinf=9e9)
    steps = (table[1:] - table[:-1]).norm(dim=-1)
    return {
        "bounded": table.abs().max().item(),
        "unique": apart.min().item(),
        "same in any sentence": (table[PLACE] - short[PLACE]).norm().item(),
        "of even steps": (steps.min() / steps.max()).item(),
    }


MEETS: dict[str, Callable[[float], bool]] = {
    "bounded": lambda largest: largest <= 1 + 1e-9,
    "unique": lambda closest: closest > 1e-3,
    "same in any sentence": lambda moved: moved < 1e-9,
    "of even steps": lambda ratio: ratio > 0.9,
}


def _measure(work: Workshop) -> Finding:
    found = {name: properties(encoding) for name, encoding in ENCODINGS.items()}
    met = {name: [MEETS[p](value) for p, value in one.items()] for name, one in found.items()}
    complete = [name for name, flags in met.items() if all(flags)]
    told = "; ".join(
        f"{name} is not: {', '.join(_missed(found[name], flags))}"
        for name, flags in met.items()
        if not all(flags)
    )
    return Finding(
        verdict=f"Of all {len(met)}, {' and '.join(complete) or 'none'} alone has everything; "
        f"{told}.",
        holds=complete == ["sinusoids"],
        head=("encoding", *MEETS),
        rows=tuple(
            (
                name,
                *(
                    f"{value:.3g}{'' if ok else '  no'}"
                    for value, ok in zip(one.values(), met[name])
                ),
            )
            for name, one in found.items()
        ),
        lines=(_distances(),),
        heats=tuple(_values(name, encoding) for name, encoding in ENCODINGS.items()),
    )


def _missed(found: dict[str, float], flags: list[bool]) -> list[str]:
    return [f"{name} ({value:.3g})" for (name, value), ok in zip(found.items(), flags) if not ok]


def _distances() -> LinePanel:
    """From a position in the middle to all others: what a model can tell apart."""
    middle, length = 24, 49
    lines: dict[str, tuple[Mark, ...]] = {}
    for name, encoding in ENCODINGS.items():
        table = encoding(torch.arange(length).double(), WIDTH)
        far = (table - table[middle]).norm(dim=-1).tolist()
        lines[name] = tuple(
            Mark("", float(t - middle), min(y, 6.0), min(y, 6.0), min(y, 6.0))
            for t, y in enumerate(far)
        )
    return LinePanel(
        title="How far other positions are from position 24",
        x_title="words away",
        y_title="distance (cut at 6)",
        lines=lines,
    )


def _values(name: str, encoding: Encoding) -> HeatPanel:
    table = encoding(torch.arange(SHOWN).double(), WIDTH).clamp(-1, 1)
    return HeatPanel(
        title=name,
        rows=tuple(str(t) if t % 8 == 0 else "" for t in range(SHOWN)),
        columns=("",) * WIDTH,
        values=tuple(map(tuple, table.tolist())),
        low=-1.0,
        x_title="dimension",
        y_title="position",
    )


CLAIM = LectureClaim(
    key="C5",
    title="Encodings of position side by side",
    claim="A good encoding is unique for each position, bounded, the same in sentences of any "
    "length, and equal steps mean equal distances. The index, the fraction, one rising "
    "function and one sine each miss some of it; many sines and cosines have it all.",
    expect="Only the sinusoids have a pattern of their own in every row (cells go from "
    "the page's colour at −1 to the strongest at 1), and a distance that is level far away, with "
    "its only zero at the position itself.",
    seconds=2,
    measure=_measure,
)
