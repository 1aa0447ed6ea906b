"""A sentence with its annotation, from whatever source."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass, field
from typing import Any

Span = tuple[int, int]  # characters text[start:end]


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
        """Read what :meth:`to_plain` returned."""
        spans = {
            label: tuple((start, end) for start, end in found)
            for label, found in plain["spans"].items()
        }
        links = tuple(((a[0], a[1]), (b[0], b[1])) for a, b in plain["coreference"])
        words = tuple(AnnotatedWord(*word) for word in plain["words"])
        return cls(plain["text"], words, spans, links)
