"""The interface of every tokenizer, and its special tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clearhead.arguments import flag, path, several, whole_number
from clearhead.errors import CheckpointError, InputError
from clearhead.text.stream_decoder import StreamDecoder
from clearhead.text.token import Token


@dataclass(frozen=True)
class SpecialTokens:
    """The ids with a meaning of their own; ``None`` where the vocabulary has no such token.

    ``all`` holds every id that ``decode`` leaves out with ``skip_special``.
    """

    bos: int | None = None
    eos: int | None = None
    pad: int | None = None
    unk: int | None = None
    mask: int | None = None
    cls: int | None = None
    sep: int | None = None
    all: frozenset[int] = frozenset()


SPECIAL_NAMES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")


class Tokenizer(ABC):
    """Text to ids and back: the interface of every tokenizer."""

    specials: SpecialTokens = SpecialTokens()
    chat_template: str | None = None

    @property
    @abstractmethod
    def size(self) -> int:
        """The highest id plus one: the number of rows that an embedding needs."""

    @abstractmethod
    def tokens(self, text: str, *, special: bool = True) -> list[Token]:
        """The tokens of ``text`` with their spans; ``special`` adds the model's own (BOS …)."""

    @abstractmethod
    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ``ids``; bytes that make no character become U+FFFD."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """The raw vocabulary entry of an id."""

    @abstractmethod
    def id(self, piece: str) -> int | None:
        """The id of a raw vocabulary entry; ``None`` when it has none."""

    @abstractmethod
    def save(self, folder: Path | str) -> None:
        """Write the files that ``load_tokenizer(folder)`` reads."""

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The ids of ``text``."""
        return [token.id for token in self.tokens(text, special=special)]

    def stream(self, *, skip_special: bool = True) -> StreamDecoder:
        """A decoder that takes one id at a time and returns text as soon as it is certain."""
        skipped = self.specials.all if flag("skip_special", skip_special) else frozenset()
        return StreamDecoder(lambda ids: self.decode(ids, skip_special=False), skipped)

    def check_ids(self, ids: object) -> list[int]:
        """Return ``ids`` as ints; raise an ``InputError`` unless they are a list of such ids."""
        return [self.check_id(id) for id in several("ids", ids, "token ids")]

    def check_id(self, id: object) -> int:
        """Return ``id`` as an int; raise an ``InputError`` if this vocabulary lacks it."""
        number = id if type(id) is int else whole_number("a token id", id)
        if not 0 <= number < self.size:
            raise InputError(
                f"token id {number} is not in this vocabulary of {self.size} entries (0 … "
                f"{self.size - 1}).",
                hint="do the model and the tokenizer belong together?",
            )
        return number


@contextmanager
def writing_errors(folder: object) -> Iterator[Path]:
    """Yield the folder as a path; what the disk refuses becomes an error that names it."""
    place = path("folder", folder)
    try:
        yield place
    except OSError as error:
        raise CheckpointError(
            f"cannot write a tokenizer into the folder {place}: {error.strerror or error}.",
            hint="is the disk full or write-protected, or the path a file?",
        ) from error


def check_text(text: object, name: str = "text") -> str:
    """Return ``text``, or raise an ``InputError`` if it is not a str that UTF-8 can encode."""
    if not isinstance(text, str):
        raise InputError(
            f"{name} must be a str: a tokenizer takes a str; {type(text).__name__} came."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the {name} holds half a character (a lone surrogate) at position {error.start}.",
            hint='it was probably read with errors="surrogateescape"; read it as UTF-8.',
        ) from None
    return text
