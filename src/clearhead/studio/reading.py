"""Reading a text that changes a little at a time: what stands before the change is not run again.

The keys and values of the last text are in the cache of a session; its queries, outputs and
log-sum-exps are in its records, and the likeliest logits of its positions are kept. Of a new text
the common beginning is taken from there, and only the rest runs, on the CPU engine where it
supports the model. A row of the engine depends on its own tokens only, so the numbers are those of
a whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.generated import GeneratedText
from clearhead.explain.make_look import checked_text, read_passage
from clearhead.explain.predictions import KEPT as LISTED
from clearhead.explain.predictions import NONE
from clearhead.generation.session import Session, common_prefix
from clearhead.generation.sound_logits import refuse_unsound
from clearhead.generation.token_sampler import tokenizer_logits
from clearhead.text.token import Token
from clearhead.trace.chunks import Chunk
from clearhead.trace.labels import Labels
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerRecord
from clearhead.trace.seen import Seen
from clearhead.trace.watching.watch import watch
from clearhead.views.page.predictions import (
    FIELDS,
    TEMPERATURES,
    KeptLogits,
    joined_logits,
    kept_logits,
    vocabulary,
)

STEP = 128  # tokens between two looks at whether somebody still waits
WORKSPACE = 10_000_000  # bytes of a session: the memory of its steps, a cache for a short text
KEPT = 100  # likeliest tokens of each position


class Reader:
    """The last text of one page, with what is known about each of its tokens."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.session = Session(loaded)
        self.kept = min(KEPT, LISTED, vocabulary(loaded))
        self.computed = 0  # tokens of the last text that were run
        self._ids: list[int] = []
        self._records: list[LayerRecord] = []
        self._logits: KeptLogits | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the records and logits, and of the session with its cache."""
        kept = self._logits
        logits = 0 if kept is None else sum(getattr(kept, name).nbytes for name in FIELDS)
        return sum(record.nbytes for record in self._records) + logits + self._session_bytes

    @property
    def _session_bytes(self) -> int:
        if not self.session.cached_ids:
            return 0
        cache = sum(
            record.key.nbytes for record in self._records
        )  # keys and values, half precision
        return WORKSPACE + cache

    def rest(self) -> None:
        """Let go of the session: the next text is read from its beginning."""
        self.session.reset()

    def read(self, passage: Passage, check: Callable[[int, int], None]) -> tuple[Seen, KeptLogits]:
        """Read a text; ``check`` is called with the tokens done and all, and may raise."""
        ids = [token.id for token in passage.tokens]
        # The last common token is run again: what comes after it is new, or nothing.
        known = max(0, common_prefix(self._ids, ids) - 1)
        self.computed = len(ids) - known
        runner = self.session.runner(ids)
        if runner.length != known:
            known = min(known, runner.length)
            if runner.length:
                runner.crop(known)
        records, parts = self._beginning(known)
        self._ids = []  # until all of it is known
        for start in range(known, len(ids), STEP):
            check(start, len(ids))
            part = ids[start : start + STEP]
            with watch(self.loaded.model, values=True) as seen:
                logits = tokenizer_logits(runner.extend_all(part), self.loaded.tokenizer)
            refuse_unsound(logits)
            records = _grown(records, seen, start)
            following = [*ids[start + 1 : start + STEP + 1], NONE][: len(part)]
            parts.append(kept_logits(logits.float(), following, self.kept, TEMPERATURES))
        check(len(ids), len(ids))
        self._ids, self._records, self._logits = ids, records, joined_logits(parts)
        found = Seen([record.copy() for record in records])
        found.labels = Labels([passage])
        return found, self._logits

    def _beginning(self, known: int) -> tuple[list[LayerRecord], list[KeptLogits]]:
        if known == 0 or self._logits is None:
            return [], []
        records = [record.copy() for record in self._records]
        for record in records:
            record.truncate(known, known)
        kept = KeptLogits(*(getattr(self._logits, name)[:known] for name in FIELDS))
        return records, [kept]


def _grown(records: list[LayerRecord], seen: Seen, start: int) -> list[LayerRecord]:
    """The records with the rows of another run, whose keys begin before them."""
    seen.require()
    if not records:
        return seen.records
    for record, new in zip(records, seen.records, strict=True):
        first = new.key.shape[2] - new.query.shape[2]
        if first > start:
            raise InputError("the rows of a run do not follow on those before.")
        value = new.value
        (piece,) = new.pieces
        record.append(
            Chunk(
                new.query, new.key[:, :, first:],
                None if value is None else value[:, :, first:],
                new.logsum, new.output, piece,
            )
        )  # fmt: skip
    return records


def whole_passage(
    loaded: Loaded, text: str, ids: Sequence[int]
) -> tuple[Passage, GeneratedText | None]:
    """A text, and the tokens that a model wrote after it, as one passage."""
    read = read_passage(loaded, checked_text(text))
    if not ids:
        return read, None
    tokenizer = loaded.tokenizer
    assert tokenizer is not None
    if max(ids) >= tokenizer.size:
        raise InputError(f"this vocabulary has ids 0 … {tokenizer.size - 1}; got {max(ids)}.")
    stream = tokenizer.stream()
    for token in read.tokens[-8:]:
        stream.push(token.id)
    whole, tokens = text, list(read.tokens)
    for id in ids:
        piece = stream.push(id)
        special = id in tokenizer.specials.all
        name = piece or tokenizer.piece(id)
        tokens.append(Token(id, name, len(whole), len(whole) + len(piece), special))
        whole += piece
    passage = Passage(whole, tuple(tokens))
    return passage, GeneratedText(passage, len(read.tokens), (None,) * len(ids))
