"""Tokenizers with a plain list of pieces: a subclass only defines how to split and to join."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from clearhead.arguments import flag
from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import read_json, write_json
from clearhead.files.regular_file import LARGEST_TEXT
from clearhead.text.stream_decoder import REPLACEMENT
from clearhead.text.token import Token
from clearhead.text.tokenizer import SpecialTokens, Tokenizer, check_text, writing_errors

FILE_NAME = "vocabulary.json"
FORMAT = "clearhead vocabulary 1"
PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"


Kind = TypeVar("Kind", bound="VocabularyTokenizer")


class VocabularyTokenizer(Tokenizer):
    """Ids 0 to 3 are ``<pad> <bos> <eos> <unk>``; then come the pieces in the given order.

    An unknown piece becomes ``<unk>`` and is decoded as U+FFFD. Special tokens are never read out
    of a text: the characters ``<eos>`` in it are just characters.
    """

    kind: ClassVar[str]

    def __init__(
        self, pieces: Iterable[str], *, add_bos: bool = False, add_eos: bool = False
    ) -> None:
        self._specials = (PAD, BOS, EOS, UNK)
        self._pieces = tuple(pieces)
        offset = len(self._specials)
        self._check_pieces()
        self._ids = {piece: offset + index for index, piece in enumerate(self._pieces)}
        self.add_bos, self.add_eos = add_bos, add_eos
        self.specials = SpecialTokens(pad=0, bos=1, eos=2, unk=3, all=frozenset({0, 1, 2}))

    @classmethod
    def from_texts(
        cls: type[Kind],
        texts: Iterable[str] | str,
        *,
        add_bos: bool = False,
        add_eos: bool = False,
    ) -> Kind:
        """A tokenizer that knows every piece of these texts, in sorted order."""
        several = [texts] if isinstance(texts, str) else texts
        known = {text[start:end] for text in several for start, end in cls.spans(check_text(text))}
        return cls(sorted(known), add_bos=add_bos, add_eos=add_eos)

    @staticmethod
    @abstractmethod
    def spans(text: str) -> Iterator[tuple[int, int]]:
        """Yield where the pieces of a text begin and end."""

    @staticmethod
    @abstractmethod
    def join(pieces: Sequence[str]) -> str:
        """Return the text of some pieces."""

    @property
    def size(self) -> int:
        """Pieces and special tokens together."""
        return len(self._specials) + len(self._pieces)

    def tokens(self, text: str, *, special: bool = True) -> list[Token]:
        """The pieces of ``text`` with their spans."""
        check_text(text)
        special = flag("special", special)
        found = [Token(self._known(text[a:b]), text[a:b], a, b) for a, b in self.spans(text)]
        before = [Token(1, BOS, 0, 0, special=True)] if special and self.add_bos else []
        end = found[-1].end if found else 0
        after = [Token(2, EOS, end, end, special=True)] if special and self.add_eos else []
        return before + found + after

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ``ids`` as ``join`` puts it together."""
        numbers, skip_special = self.check_ids(ids), flag("skip_special", skip_special)
        return self.join(
            [
                REPLACEMENT if id == self.specials.unk else self.piece(id)
                for id in numbers
                if not (skip_special and id in self.specials.all)
            ]
        )

    def piece(self, id: int) -> str:
        """The piece of an id."""
        number = self.check_id(id)
        offset = len(self._specials)
        return self._specials[number] if number < offset else self._pieces[number - offset]

    def id(self, piece: str) -> int | None:
        """The id of a piece; a special token's name counts only when it is no piece itself."""
        check_text(piece, "piece")
        if piece in self._ids:
            return self._ids[piece]
        return self._specials.index(piece) if piece in self._specials else None

    def save(self, folder: Path | str) -> None:
        """Write ``vocabulary.json``."""
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "add_bos": self.add_bos,
            "add_eos": self.add_eos,
            "pieces": list(self._pieces),
        }
        with writing_errors(folder) as place:
            write_json(place / FILE_NAME, content)

    @classmethod
    def from_file(cls: type[Kind], path: Path | str) -> Kind:
        """Read what ``save`` wrote."""
        content = read_vocabulary(Path(path))
        if content["kind"] != cls.kind:
            raise CheckpointError(
                f"{path} is a vocabulary of {content['kind']!r}, not of {cls.kind!r}."
            )
        try:
            return cls(content["pieces"], add_bos=content["add_bos"], add_eos=content["add_eos"])
        except InputError as error:
            raise CheckpointError(f"{path}: {error.message}") from None

    def _known(self, piece: str) -> int:
        return self._ids.get(piece, 3)

    def _check_pieces(self) -> None:
        if not all(self._pieces):
            raise InputError("every piece of a vocabulary is a text of at least one character.")
        if len(set(self._pieces)) < len(self._pieces):
            piece, times = Counter(self._pieces).most_common(1)[0]
            raise InputError(
                f"a vocabulary names each piece once; {piece!r} is there {times} times."
            )


def read_vocabulary(path: Path) -> dict[str, Any]:
    """The checked content of a ``vocabulary.json``."""
    content = read_json(path, largest=LARGEST_TEXT)
    if content.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} should say format {FORMAT!r}, and says {content.get('format')!r}.",
            hint="it belongs to another program or a newer clearhead.",
        )
    wanted = {"kind": str, "pieces": list, "add_bos": bool, "add_eos": bool}
    for key, kind in wanted.items():
        if not isinstance(content.get(key), kind):
            raise CheckpointError(f"{path}: {key!r} should be a {kind.__name__}.")
    for piece in content["pieces"]:
        if not isinstance(piece, str):
            raise CheckpointError(f"{path}: a piece should be a text, and is {piece!r}.")
    return content
