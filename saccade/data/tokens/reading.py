"""What a tokenizer makes of a text or a pair of texts, with its special tokens around them.

Each tokenizer has a template of its own: BERT's is [CLS] a [SEP] b [SEP], RoBERTa's
<s> a </s></s> b </s>. One without gets ours: start a end, and b end.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tokenizers import Encoding, Tokenizer

from saccade.data.tokens.words import Span

NOWHERE: Span = (0, 0)


class Reading(NamedTuple):
    """Tokens; what the model is told of which text each belongs to; its characters; its text.

    `spans` are characters of a token's own text, (0, 0) for special tokens; `sides` is 0 or 1, None
    for special tokens.
    """

    tokens: list[int]
    types: list[int]
    spans: list[Span]
    sides: list[int | None]


class TemplatePlace(NamedTuple):
    """One place of a template: a special token, or all the tokens of a text."""

    token: int | None
    side: int | None
    type: int


Template = tuple[TemplatePlace, ...]


def template(tokenizer: Tokenizer, texts: int, *, start: int, end: int) -> Template:
    """That of a tokenizer for one text or for two; ours where it adds no special tokens."""
    ours = [TemplatePlace(start, None, 0)]
    for side in range(texts):
        ours += [TemplatePlace(None, side, side), TemplatePlace(end, None, side)]
    if not tokenizer.num_special_tokens_to_add(texts == 2):
        return tuple(ours)
    found = _example(tokenizer, texts)
    slots = list[TemplatePlace]()
    for token, side, kind in zip(found.ids, found.sequence_ids, found.type_ids):
        if side is None:
            slots.append(TemplatePlace(token, None, kind))
        elif not slots or slots[-1].side != side:  # the first token of a text stands for them all
            slots.append(TemplatePlace(None, side, kind))
    return tuple(slots)


def _example(tokenizer: Tokenizer, texts: int) -> Encoding:
    """How it reads anything; of the first that it has tokens for."""
    known = tokenizer.get_vocab()
    for text in ("a", *sorted(known, key=known.__getitem__)):
        if tokenizer.encode(text, add_special_tokens=False).ids:
            return tokenizer.encode(text, text if texts == 2 else None)
    return tokenizer.encode("", "" if texts == 2 else None)


def filled(slots: Template, texts: Sequence[Encoding], longest: int | None) -> Reading:
    """A template with what is kept of the texts in their places."""
    special = sum(slot.token is not None for slot in slots)
    kept = [len(text.ids) for text in texts]
    if longest is not None:
        kept = longest_first(kept, longest - special)
    reading = Reading([], [], [], [])
    for token, side, kind in slots:
        if token is not None:
            ids, spans = [token], [NOWHERE]
        else:
            assert side is not None
            ids, spans = texts[side].ids[: kept[side]], texts[side].offsets[: kept[side]]
        reading.tokens.extend(ids)
        reading.spans.extend(spans)
        reading.types.extend([kind] * len(ids))
        reading.sides.extend([side] * len(ids))
    return reading


def longest_first(lengths: list[int], room: int) -> list[int]:
    """How much stays of each text: the longer loses tokens until both are alike, then both do."""
    if sum(lengths) <= room:
        return lengths
    if len(lengths) == 1:
        return [room]
    shorter = min(*lengths, room // 2)
    rest = room - shorter
    return [shorter, rest] if lengths[0] <= lengths[1] else [rest, shorter]
