"""The recorded attention of a run: its layers, its heads by name, the proof, saving."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from clearhead.errors import InputError
from clearhead.trace.cost import Cost, View
from clearhead.trace.head_name import parse_name, pick_heads
from clearhead.trace.head_view import HeadView
from clearhead.trace.labels import Labels
from clearhead.trace.passage import Passage, passage_of
from clearhead.trace.proof import Proof, prove
from clearhead.trace.record import LayerRecord
from clearhead.trace.selection import Selection
from clearhead.trace.spill import Spill


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """One attention layer of a run: its kind, its sizes and a note."""

    name: str
    path: str
    kind: Literal["self", "cross"]
    causal: bool
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    key_dim: int
    value_dim: int
    dtype: torch.dtype
    values_kept: bool
    note: str


class Seen:
    """The attention of a run, exact at any place, in memory that is linear in tokens.

    ``seen.layers`` lists what there is; ``seen["L16H5"]`` is a head, ``seen["L16"]`` a layer's
    heads (:class:`~clearhead.trace.head_view.HeadView`). ``records`` may grow while it is watched.
    """

    def __init__(
        self,
        records: list[LayerRecord] | None = None,
        tokens: Passage | Sequence[Passage] | None = None,
        *,
        source: Passage | Sequence[Passage] | None = None,
        spill: Spill | None = None,
        missed: str = "",
    ) -> None:
        self.records = [] if records is None else records
        self.labels = Labels(_listed(tokens), _listed(source))
        self.spill = spill
        self.missed = missed  # what was not seen, and why; "" if nothing was missed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(self._parts())})"

    @property
    def layers(self) -> list[LayerSummary]:
        """Every layer that was seen, in the order in which it ran first."""
        return [_summary(record) for record in self.records]

    @property
    def nbytes(self) -> int:
        """The size of the trace in bytes, in memory and on the disk."""
        return sum(record.nbytes for record in self.records)

    def __getitem__(self, name: str) -> HeadView:
        layer, chosen = parse_name(name)
        record = self._record(layer, name)
        numbers = record.head_numbers
        if isinstance(chosen, int) and chosen >= record.facts.heads:
            raise InputError(f"{name}: {self._size_of_model(layer)}.")
        if chosen is not None:
            numbers = pick_heads(layer, record.head_numbers, chosen)
        places = tuple(record.head_numbers.index(number) for number in numbers)
        rows, columns = self.labels.of(record)
        return HeadView(record, places, isinstance(chosen, int), 0, rows, columns)

    def label(
        self,
        tokenizer: object,
        text: str | Sequence[str],
        *,
        source: str | Sequence[str] | None = None,
    ) -> Seen:
        """Give rows and columns their tokens, from the text (of each sequence of the batch).

        ``tokenizer`` is one of ours or a fast one of ``transformers``. ``source`` is the text that
        an encoder-decoder's encoder read. Returns the same Seen.
        """
        labels = Labels(
            [passage_of(tokenizer, one) for one in _texts(text)],
            [] if source is None else [passage_of(tokenizer, one) for one in _texts(source)],
        )
        for record in self.records:
            labels.of(record)  # complains where they do not fit
        self.labels = labels
        return self

    def cost(
        self,
        name: str,
        view: View = "map",
        rows: Selection = None,
        columns: Selection = None,
        *,
        size: int = 512,
    ) -> Cost:
        """Bytes and estimated seconds of a view, before anything is computed."""
        return self[name].cost(view, rows, columns, size=size)

    def verify(self, rows: int | None = None) -> Proof:
        """The proof: every row of every head against what the layer itself computed.

        With ``rows``, only so many of each head and sequence are compared, evenly spaced over the
        text, and the verdict is "sampled" at best.
        """
        self.require("there is nothing to verify")
        return prove(self.records, rows)

    def save(self, path: str | Path) -> Path:
        """Write everything to one file, which ``open_trace`` opens without the model."""
        from clearhead.trace.trace_file import save_trace

        self.require("there is nothing to save")
        return save_trace(self, path)

    def close(self) -> None:
        """Forget everything, and remove the files that long traces were spilled to."""
        self.records.clear()
        if self.spill is not None:
            self.spill.close()

    def _record(self, layer: str, name: str) -> LayerRecord:
        self.require(f"{name} does not exist")
        for record in self.records:
            if record.facts.name == layer:
                return record
        raise self.unknown_layer(layer, name)

    def _size_of_model(self, layer: str) -> str:
        """ "this model has 30 layers of 9 heads", or which layers were watched."""
        same = [record for record in self.records if record.facts.name[0] == layer[0]]
        if not same:
            kinds = sorted({record.facts.name[0] for record in self.records})
            return f"this model has no layers named {layer[0]}…; their names begin with {kinds}"
        numbers = [int(record.facts.name[1:]) for record in same]
        if sorted(numbers) != list(range(len(numbers))):
            return f"seen were only {', '.join(record.facts.name for record in same)}"
        heads = {record.facts.heads for record in same}
        many = f"{heads.pop()}" if len(heads) == 1 else f"{min(heads)} to {max(heads)}"
        return f"this model has {len(same)} layer{'s' * (len(same) > 1)} of {many} heads"

    def _parts(self) -> list[str]:
        """The parts of the repr: sizes and what was missed."""
        if not self.records:
            return [f"no attention was seen{f': {self.missed}' if self.missed else ''}"]
        layers = self.layers
        sizes = [
            f"{len(layers)} layer{'s' * (len(layers) > 1)} × "
            f"{_between(layer.heads for layer in layers)} heads",
            f"{_between(layer.queries for layer in layers)} queries × "
            f"{_between(layer.keys for layer in layers)} keys",
            f"{self.nbytes / 1e6:,.3g} MB",
        ]
        batch = max(layer.batch for layer in layers)
        if batch > 1:
            sizes.insert(2, f"{batch} sequences")
        return [", ".join(sizes), self.missed or "nothing missed"]

    def unknown_layer(self, layer: str, name: str | None = None) -> InputError:
        """The error for a layer that was not seen; ``name`` is what was asked for, if not that."""
        asked = layer if name is None else name
        return InputError(
            f"{asked}: {self._size_of_model(layer)}.", hint="seen.layers lists what was seen."
        )

    def require(self, consequence: str = "there is nothing to look at") -> None:
        """Raise InputError, with the reason, if no attention was seen."""
        if not self.records:
            why = self.missed or "no attention ran inside the watch block"
            raise InputError(
                f"no attention was seen: {why}; {consequence}.",
                hint="run the model inside `with watch(model) as seen:`.",
            )


def _summary(record: LayerRecord) -> LayerSummary:
    facts, query, key = record.facts, record.query, record.key
    return LayerSummary(
        facts.name, facts.path, facts.kind, facts.causal, query.shape[0], facts.heads,
        facts.kv_heads, query.shape[2], key.shape[2], facts.key_dim, facts.value_dim, facts.dtype,
        record.value is not None, facts.note,
    )  # fmt: skip


def _between(counts: Iterable[int]) -> str:
    """ "9", or "4 to 9" where layers differ."""
    found = sorted(set(counts))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _listed(passages: Passage | Sequence[Passage] | None) -> list[Passage]:
    if passages is None:
        return []
    return [passages] if isinstance(passages, Passage) else list(passages)


def _texts(text: str | Sequence[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)
