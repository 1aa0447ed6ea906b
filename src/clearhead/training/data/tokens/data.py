"""The data of a run as tokens: what is learned, what is held out, and what is known of both.

In the folder of a run it is ``training/tokens/``: two token files, and facts.json. It is written
once; every process and every resumption of the run maps the same files.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import read_json, write_json
from clearhead.training.data.corpus import Corpus, SourceFile
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.data.tokens.survey import drained, surveyed
from clearhead.training.run_folder.schema import from_json

FACTS = "facts.json"
KINDS = ("uint16", "uint32")
LARGEST = 1 << 28  # bytes of facts.json: folders of very many files


@dataclass(frozen=True)
class PartFacts:
    """What is known of the texts that are learned, or of those that are held out."""

    documents: int = 0
    tokens: int = 0
    characters: int = 0
    bytes: int = 0  # of UTF-8, of the text that is to be predicted
    unknown: int = 0  # tokens that stand for what the vocabulary does not have


@dataclass(frozen=True)
class KeptSource:
    """A file that was read, as it was then."""

    path: str
    size: int
    changed: int
    lines: bool
    checksum: str


@dataclass(frozen=True)
class DataFacts:
    """The content of facts.json."""

    ids: str  # the kind of number that an id is
    learned: PartFacts
    held: PartFacts
    sources: tuple[KeptSource, ...] = ()

    def __post_init__(self) -> None:
        if self.ids not in KINDS:
            raise ValueError(f"ids are {' or '.join(KINDS)}; got {self.ids!r}.")


@dataclass(frozen=True)
class TokenData:
    """The tokens to learn, those that are held out, and what is known of them."""

    learned: TokenFile
    held: TokenFile
    facts: DataFacts

    @property
    def fingerprint(self) -> str:
        """A short checksum of all tokens, in their order and documents."""
        digest = hashlib.sha256()
        for part in (self.learned, self.held):
            for numbers, kind in ((part.ids, "<u4"), (part.ends, "<i8")):
                for at in range(0, len(numbers), 1 << 20):
                    digest.update(numbers[at : at + (1 << 20)].astype(kind).tobytes())
        return digest.hexdigest()[:16]

    @property
    def bytes_per_token(self) -> float | None:
        """Of the text that is validated on: bytes of UTF-8 for each token that is predicted."""
        held = self.facts.held
        predicted = held.tokens - held.documents
        return held.bytes / predicted if held.bytes > 0 and predicted > 0 else None

    @classmethod
    def open(cls, folder: Path) -> TokenData:
        """The data in a folder.

        Raises:
            CheckpointError: something is missing, or contradicts the facts.
        """
        path = folder / FACTS
        facts = from_json(DataFacts, read_json(path, largest=LARGEST), str(path))
        parts: dict[str, TokenFile] = {}
        for name in ("learned", "held"):
            part = TokenFile.open(folder, name, np.dtype(facts.ids).newbyteorder("<"))
            if part.total != getattr(facts, name).tokens:
                raise CheckpointError(f"{folder / name}.ids does not have the tokens of {path}.")
            parts[name] = part
        return cls(parts["learned"], parts["held"], facts)

    def write_facts(self, folder: Path) -> None:
        """Write facts.json; the tokens are there already."""
        write_json(folder / FACTS, dataclasses.asdict(self.facts))

    def check_ids(self, size: int) -> None:
        """Refuse tokens that a vocabulary of this size does not have."""
        for part in (self.learned, self.held):
            for at in range(0, part.total, 1 << 22):
                if int(part.ids[at : at + (1 << 22)].max()) >= size:
                    raise CheckpointError("the tokens of the run are not of its vocabulary.")

    def changed_sources(self, field: str | None) -> Iterator[str]:
        """The paths of files that now hold another text than the run learns from.

        Files that are gone are not told: the run does not need them any more.
        """
        for source in self.facts.sources:
            try:
                now = SourceFile.at(Path(source.path), lines=source.lines)
            except InputError:
                continue
            if (now.size, now.changed) != (source.size, source.changed) and _checksum(
                now, field
            ) != source.checksum:
                yield source.path


def _checksum(source: SourceFile, field: str | None) -> str | None:
    try:
        return drained(surveyed(Corpus([source], field=field))).files[0]
    except InputError:  # it is no text any more
        return None
