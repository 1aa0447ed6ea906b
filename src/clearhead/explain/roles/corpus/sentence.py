"""A sentence with its annotation, from whatever source."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass, field
from typing import Any

Span = tuple[int, int]  # characters text[start:end]
LONGEST = 10_000  # characters of a sentence; no model's context is that long for one


@dataclass(frozen=True, slots=True)
class AnnotatedWord:
    """A word, its characters ``text[start:end]``, and its annotated grammar."""

    text: str
    start: int
    end: int
    pos: str = ""  # universal part of speech: "VERB"; "" unknown
    head: int | None = None  # the number of the word it depends on; None: the root, or unknown
    relation: str = ""  # to that word: "nsubj"; "" unknown


@dataclass(frozen=True)
class Sentence:
    """A text with its words, marked spans ("date", "number", "name" …) and coreference.

    ``coreference`` holds pairs of spans: a pronoun, and what it stands for.
    """

    text: str
    words: tuple[AnnotatedWord, ...]
    spans: dict[str, tuple[Span, ...]] = field(default_factory=dict)
    coreference: tuple[tuple[Span, Span], ...] = ()

    @property
    def parsed(self) -> bool:
        """True if relations between its words are annotated."""
        return any(word.relation for word in self.words)

    @property
    def key(self) -> int:
        """A number that depends on the text alone: which half it belongs to, and its order."""
        digest = hashlib.blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=7)
        return int.from_bytes(digest.digest(), "big")

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "text": self.text,
            "words": [astuple(word) for word in self.words],
            "spans": self.spans,
            "coreference": self.coreference,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Sentence:
        """Read what :meth:`to_plain` returned.

        Raises:
            ValueError: (or TypeError, LookupError) it is something else.
        """
        text = _text(plain["text"])
        words = tuple(_word(word, text, len(plain["words"])) for word in plain["words"])
        spans = {
            label: tuple(_span(one, text) for one in found)
            for label, found in plain["spans"].items()
        }
        links = tuple((_span(a, text), _span(b, text)) for a, b in plain["coreference"])
        return cls(text, words, spans, links)


def _word(plain: Any, text: str, words: int) -> AnnotatedWord:
    word = AnnotatedWord(*plain)
    _span([word.start, word.end], text)
    for part in (word.text, word.pos, word.relation):
        _text(part)
    if word.head is not None and (type(word.head) is not int or not 0 <= word.head < words):
        raise ValueError(f"the head {word.head!r:.40} is no word of the sentence")
    return word


def _span(plain: Any, text: str) -> Span:
    start, end = plain
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text):
        raise ValueError(f"a span from {start!r:.40} to {end!r:.40} in {len(text)} characters")
    return start, end


def _text(plain: Any) -> str:
    if not isinstance(plain, str) or len(plain) > LONGEST:
        raise ValueError(f"a text of at most {LONGEST:,} characters was wanted; {plain!r:.40} came")
    return plain
