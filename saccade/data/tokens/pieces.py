"""Which characters of a text each token stands for, and what each token reads like in its place.

A token of a byte-level tokenizer may be a part of a character, or the end of one and the start of
the next. It stands for every character that it has a part of. What it reads like are the characters
that begin in it, so that all labels together are the text: the first token of a character shows it
whole, those that only carry it on show nothing.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise

from saccade.data.tokens.words import Span, grapheme_boundaries

Decode = Callable[[list[int]], str]
BEFORE = 8  # tokens that are decoded again before each; a character has at most four
PART = "\ufffd"  # what a decoder writes for a part of a character
# How byte-level tokenizers write a byte: itself where it is a visible letter, else one past 255.
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(0x100 + i): byte for i, byte in enumerate(b for b in range(256) if b not in _VISIBLE)
}


def token_spans(decode: Decode, tokens: list[int]) -> list[Span]:
    """Which characters of `decode(tokens)` each token stands for.

    A token adds to the text by as much as it makes the text of the few before it longer.
    """
    text, spans = decode(tokens), list[Span]()
    end = 0
    for place in range(len(tokens)):
        known = decode(tokens[max(0, place - BEFORE) : place])
        longer = decode(tokens[max(0, place - BEFORE) : place + 1])
        unfinished = known.endswith(PART) and text[end - 1 : end] != PART
        start, end = end - unfinished, min(end + max(0, len(longer) - len(known)), len(text))
        spans.append((start, end))
    return spans


def token_labels(text: str, spans: Iterable[Span]) -> list[str]:
    """The characters that begin in each token, with any blanks before; together they are the text.

    What readers take for one character is shown by the first token that has a part of it.
    """
    whole = sorted(grapheme_boundaries(text))
    ends = list(accumulate((end for _, end in spans), max))
    if ends:
        ends[-1] = len(text)
    cuts = [whole[bisect_left(whole, end)] for end in ends]
    return [text[start:end] for start, end in pairwise([0, *cuts])]


def token_after(decode: Decode, before: list[int], token: int, entry: str) -> str:
    """What a token adds to those before it; one that ends within a character is named by its bytes.

    `entry` is the token as its tokenizer writes it.
    """
    before = before[-BEFORE:]
    known, longer = decode(before).rstrip(PART), decode([*before, token])
    if longer.endswith(PART) and (content := entry_bytes(entry)):
        return "".join(f"<0x{byte:02X}>" for byte in content)
    return longer.removeprefix(known)


def entry_bytes(entry: str) -> bytes:
    """What a byte-level tokenizer means by an entry; nothing where it is none of its."""
    return bytes(_BYTES[letter] for letter in entry) if _BYTES.keys() >= set(entry) else b""
