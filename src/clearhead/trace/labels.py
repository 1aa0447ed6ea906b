"""The token of each row and column, also in padded batches and after generation."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.errors import InputError
from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerRecord

PADDING = Token(-1, "", 0, 0, special=True)


class Labels:
    """The passages of a batch: what was read, and for an encoder-decoder, what its encoder read."""

    def __init__(self, passages: Sequence[Passage] = (), sources: Sequence[Passage] = ()) -> None:
        self.passages, self.sources = list(passages), list(sources)

    def of(self, record: LayerRecord) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
        """A layer's row and column labels, one for each sequence; empty where they are unknown."""
        facts, rows, keys = record.facts, record.query.shape[2], record.key.shape[2]
        if facts.name[0] in "VA":  # images and sound have no tokens
            return (), ()
        if facts.kind == "cross":
            return (
                _all_fitted(record, self.passages, rows, "rows"),
                _all_fitted(record, self.sources, keys, "columns"),
            )
        read = self.sources if facts.name.startswith("E") else self.passages
        columns = _all_fitted(record, read, keys, "columns")
        # Fewer rows than keys: the first keys were in the cache before anybody watched.
        if rows > keys:
            return (), columns
        return tuple(_last(passage, rows) for passage in columns), columns


def _all_fitted(
    record: LayerRecord, passages: list[Passage], length: int, axis: str
) -> tuple[Passage, ...]:
    if not passages:
        return ()
    name, batch = record.facts.name, record.query.shape[0]
    if len(passages) == 1 and batch > 1:
        passages = passages * batch  # beams, several samples: all begin with the same text
    if len(passages) != batch:
        raise InputError(
            f"{len(passages)} texts were given, but {name} saw a batch of {batch} sequences."
        )
    whole = max(map(len, passages)) >= length  # then shorter ones are padded
    return tuple(
        _fitted(record, number, passage, length, axis, whole)
        for number, passage in enumerate(passages)
    )


def _fitted(
    record: LayerRecord, batch: int, passage: Passage, length: int, axis: str, padded: bool
) -> Passage:
    """The passage with padding on the side where the sequence has it.

    A text that is shorter than what was seen needs a reason: another text of the batch is as long
    (``padded``), or the mask hides as many places.
    """
    missing = length - len(passage)
    if missing == 0:
        return passage
    if missing < 0 or not (padded or _hides(record, batch, length, axis)):
        raise InputError(
            f"the text has {len(passage)} tokens, but {record.facts.name} saw {length} {axis}.",
            hint="is it the text, and the tokenizer, that the model was given (special tokens, "
            "truncation)?",
        )
    before = _first_seen(record, batch, len(passage), length) if axis == "columns" else 0
    tokens = (PADDING,) * before + passage.tokens + (PADDING,) * (missing - before)
    return Passage(passage.text, tokens)


def _hides(record: LayerRecord, batch: int, length: int, axis: str) -> bool:
    """True if the last query does not see every key: padding is masked."""
    last = record.query.shape[2] - 1
    if axis != "columns":
        return False
    seen = record.visible(batch, range(last, last + 1), range(length))
    return seen is not None and not bool(seen.any(dim=0).all())


def _first_seen(record: LayerRecord, batch: int, count: int, keys: int) -> int:
    """Where the tokens begin: at the first key that the last query sees, if they then fit."""
    last = record.query.shape[2] - 1
    seen = record.visible(batch, range(last, last + 1), range(keys))
    if seen is None:
        return 0
    first = int(seen.any(dim=0)[0].int().argmax())
    return first if first + count <= keys and int(seen.any(dim=0)[0].sum()) == count else 0


def _last(passage: Passage, rows: int) -> Passage:
    return Passage(passage.text, passage.tokens[len(passage) - rows :])
