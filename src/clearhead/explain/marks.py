"""Marks: the places of an axis with readable labels, words or tokens; and which are hidden."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from clearhead.arguments import shown
from clearhead.errors import InputError
from clearhead.explain.pictures import Aids, Mark
from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.words import Word, words_of

LISTED = 24  # words that an error names
# Scripts that write no spaces: Thai to Myanmar, Khmer, kana and ideographs.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]")
SPACES = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def marks_of(passage: Passage | None, length: int, *, words: bool) -> tuple[Mark, ...]:
    """Return the marks of an axis of ``length`` positions; numbers if its tokens are not known."""
    if passage is None:
        return tuple(Mark(str(place), 0, 0, False, (place,)) for place in range(length))
    if not words:
        return tuple(
            _token_mark(passage.text, token, place) for place, token in enumerate(passage.tokens)
        )
    return tuple(
        _word_mark(passage, part) for word in words_of(passage) for part in _parts(passage, word)
    )


def hidden_columns(columns: Sequence[Mark], aids: Aids, *, causal: bool) -> tuple[int, ...]:
    """Return the columns that the reading aid hides.

    These are special tokens and, in causal attention, the first place: an attention sink, where
    heads put the weight that they do not need.
    """
    if aids.hide == "nothing":
        return ()
    first = aids.hide == "first and special" and causal
    return tuple(
        place for place, mark in enumerate(columns) if mark.special or (first and place == 0)
    )


def find_mark(marks: Sequence[Mark], word: int | str, what: str = "word") -> int:
    """Return the place of a mark, by its number or its text; "Lucy#2" is the second Lucy."""
    if isinstance(word, bool) or not isinstance(word, int | str):
        raise InputError(f"a {what} is chosen by its text or its number; {shown(word)} came.")
    if isinstance(word, int):
        return _by_number(marks, word, what)
    places = _places_of(marks, word.strip())
    text, _, number = word.strip().rpartition("#")
    if not places and text and number.isdecimal():
        several = _places_of(marks, text)
        if 0 < int(number) <= len(several):
            return several[int(number) - 1]
    if not places and word.strip().isdecimal():
        return _by_number(marks, int(word), what)
    if not places:
        raise InputError(f"there is no {what} {word!r} here.", hint=_listed(marks))
    if len(places) > 1:
        raise InputError(
            f"{word!r} occurs {len(places)} times, as {what}s {', '.join(map(str, places))}.",
            hint=f"choose one: {word}#1 … {word}#{len(places)}.",
        )
    return places[0]


def is_word(mark: Mark) -> bool:
    """Return whether a mark is a word, not punctuation, white space or a special token."""
    return not mark.special and any(character.isalnum() for character in mark.text)


def _by_number(marks: Sequence[Mark], number: int, what: str) -> int:
    if not -len(marks) <= number < len(marks):
        raise InputError(f"{what} {number}: there are {what}s 0 … {len(marks) - 1}.")
    return number % len(marks)


def _places_of(marks: Sequence[Mark], word: str) -> list[int]:
    exact = [place for place, mark in enumerate(marks) if mark.text == word]
    folded = word.casefold()
    return exact or [place for place, mark in enumerate(marks) if mark.text.casefold() == folded]


def _listed(marks: Sequence[Mark]) -> str:
    shown = " ".join(mark.text for mark in marks[:LISTED])
    return f"the words are: {shown}{' …' if len(marks) > LISTED else ''}"


def _parts(passage: Passage, word: Word) -> list[range]:
    """A word's tokens as one; in scripts without spaces only those that share a character."""
    if len(word.positions) == 1 or not UNSPACED.search(word.text):
        return [word.positions]
    parts = [range(word.positions.start, word.positions.start + 1)]
    for place in word.positions[1:]:
        before, token = passage.tokens[place - 1], passage.tokens[place]
        if token.start < before.end:
            parts[-1] = range(parts[-1].start, place + 1)
        else:
            parts.append(range(place, place + 1))
    return parts


def _word_mark(passage: Passage, positions: range) -> Mark:
    tokens = passage.tokens[positions.start : positions.stop]
    start, end = tokens[0].start, max(token.end for token in tokens)
    if tokens[0].special or start == end:
        return _token_mark(passage.text, tokens[0], positions.start)
    start, end = _trimmed(passage.text, start, end)
    return Mark(readable(passage.text[start:end]), start, end, False, tuple(positions))


def _token_mark(text: str, token: Token, place: int) -> Mark:
    if token.special:
        name = token.text.strip("<>[]| ") or "pad"
        return Mark(f"⟨{readable(name)}⟩", token.start, token.end, True, (place,))
    start, end = _trimmed(text, token.start, token.end)
    read = token.text.strip() or token.text or "∅"
    return Mark(readable(read), start, end, False, (place,))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without white space at either side, unless there is nothing else."""
    piece = text[start:end]
    if not piece.strip():
        return start, end
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def readable(text: str) -> str:
    """Replace what cannot be seen by signs: white space alone, control and direction characters."""
    if not text.strip():
        return "".join(SPACES.get(character, "␣") for character in text)
    return "".join(map(_sign, text))


def _sign(character: str) -> str:
    if character in SPACES and character != " ":
        return SPACES[character]
    if character in DIRECTIONS:
        return "\ufffd"
    if unicodedata.category(character) == "Cc":
        code = ord(character)
        return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else "\ufffd"
    return character
