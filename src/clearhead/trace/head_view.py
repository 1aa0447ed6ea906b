"""The attention of one head, or of several heads of a layer: exact numbers, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import one_of, whole_number
from clearhead.errors import InputError
from clearhead.trace.cost import LIMIT, VIEWS, Cost, Limit, View, check_limit, cost_of
from clearhead.trace.exact import BLOCK_COLUMNS, BLOCK_ROWS, ExactHead, Positions, plain_of_heads
from clearhead.trace.head_name import pick_heads
from clearhead.trace.passage import Passage
from clearhead.trace.pooled_map import POOLS, Cells, Pool, PooledMap, pooled
from clearhead.trace.record import LayerRecord
from clearhead.trace.selection import Axis, Selection, is_single
from clearhead.trace.top_key import TopKey, top_keys
from clearhead.trace.words import (
    Word,
    WordWeights,
    merge_columns,
    merge_rows,
    word_groups,
    words_of,
)
from clearhead.trace.workers import run_in_threads

LOWEST_LOG = -200.0  # e^−200 is nothing, and times its logarithm still nothing; −∞ would make NaN
SMALL = 1 << 16  # weights of a head: of fewer, threads would take longer to start than to work


@dataclass(frozen=True)
class HeadView:
    """Heads of one layer over one sequence of the batch.

    Results of ``seen["L16H5"]`` are (query, key); those of several heads, ``seen["L16"]`` or
    ``seen["L16H2:5"]``, have the head axis in front. Rows are queries, columns keys; each is chosen
    by index, slice, range, list or the text of its token. One index, or one token, drops its axis.
    Results are float32, or float64 where the model computed in float64.
    """

    record: LayerRecord
    places: tuple[int, ...]  # of the heads, along the record's head axis
    single: bool = True
    batch: int = 0
    row_passages: tuple[Passage, ...] = ()
    column_passages: tuple[Passage, ...] = ()

    def __repr__(self) -> str:
        batch, _, queries, _ = self.record.shape
        sequence = f", sequence {self.batch} of {batch}" if batch > 1 else ""
        labels = "" if self.column_passages else ", tokens unknown"
        sizes = f"{queries:,} queries × {self.record.keys:,} keys"
        return f"HeadView({self.name}: {sizes}{sequence}{labels})"

    @property
    def name(self) -> str:
        """The layer and the model's numbers of the heads: ``L16H5``, ``L16H2,3,4``."""
        return f"{self.record.facts.name}H{','.join(map(str, self.heads))}"

    @property
    def heads(self) -> tuple[int, ...]:
        """The model's numbers of these heads."""
        return tuple(self.record.head_numbers[place] for place in self.places)

    @property
    def rows(self) -> Axis:
        """The queries, with their tokens where they are known."""
        return Axis("row", self.record.query.shape[2], self._passage(self.row_passages))

    @property
    def columns(self) -> Axis:
        """The keys, with their tokens where they are known."""
        return Axis("column", self.record.key.shape[2], self._passage(self.column_passages))

    def of(self, batch: int) -> HeadView:
        """The same heads over another sequence of the batch."""
        count = self.record.query.shape[0]
        name = f"batch (the number of a sequence; {count} were seen)"
        batch = whole_number(name, batch, least=-count, most=count - 1)
        return replace(self, batch=batch % count)

    def __getitem__(self, heads: int | slice | Sequence[int]) -> HeadView:
        """Fewer heads, by the model's numbers."""
        numbers = pick_heads(self.record.facts.name, self.heads, heads)
        places = tuple(self.record.head_numbers.index(number) for number in numbers)
        single = len(places) == 1 and isinstance(heads, SupportsIndex)
        return replace(self, places=places, single=single)

    def row(self, row: int | str) -> Float[Tensor, "*head key"]:
        """What one query gives to every key; sums to 1 (less with sinks)."""
        return self.weights(self.rows.position(row), None, limit=None)

    def column(self, column: int | str) -> Float[Tensor, "*head query"]:
        """What one key gets from every query."""
        return self.weights(None, self.columns.position(column), limit=None)

    def weights(
        self, rows: Selection = None, columns: Selection = None, *, limit: Limit | None = LIMIT
    ) -> Tensor:
        """Any tile of the map: (query, key), with the head axis in front if there are several."""
        row_places, column_places = self.rows.places(rows), self.columns.places(columns)
        numbers = len(row_places) * len(column_places)
        self._check("weights", numbers * len(self.places), numbers, limit)
        shape = (len(self.places), len(row_places), len(column_places))
        tile = torch.empty(shape, dtype=self._dtype, device=self.record.query.device)
        step = max(1, BLOCK_ROWS * BLOCK_COLUMNS // max(1, self.columns.length))

        def fill(item: tuple[int, ExactHead, slice]) -> None:
            number, head, part = item
            some = row_places.part(part)
            tile[number, part] = head.weights(some, column_places, precise=True)

        if not self._filled_at_once(tile, row_places, column_places):
            self._share(fill, row_places, step)
        if is_single(columns):
            tile = tile[:, :, 0]
        if is_single(rows):
            tile = tile[:, 0]
        return self._shown(tile)

    def top(self, row: int | str, count: int = 5) -> list[TopKey] | list[list[TopKey]]:
        """The keys that a query attends to most, the most first; for each head if several."""
        weights = self.row(row)
        found = top_keys(weights[None] if self.single else weights, count, self.columns.passage)
        return found[0] if self.single else found

    def map(
        self,
        size: int = 512,
        pool: Pool = "max",
        *,
        rows: slice | range | None = None,
        columns: slice | range | None = None,
        limit: Limit | None = LIMIT,
    ) -> PooledMap:
        """The whole picture (or a part, to zoom in) in at most ``size`` × ``size`` cells.

        Every weight counts: a cell holds the largest, the mean or the sum of all of its weights.
        """
        size = whole_number("size (cells)", size, least=1)
        one_of("pool", pool, POOLS)
        row_cells = Cells.of(self.rows.run(rows), size)
        column_cells = Cells.of(self.columns.run(columns), size)
        numbers = row_cells.count * column_cells.count * (1 if pool == "max" else 2)
        self._check("map", self._seen_weights(Positions(row_cells.run)), numbers, limit)
        cells = [pooled(head, row_cells, column_cells, pool) for head in self._exact()]
        return PooledMap(self._shown(torch.stack(cells)), row_cells.edges, column_cells.edges, pool)

    def entropy(
        self, rows: Selection = None, *, limit: Limit | None = LIMIT
    ) -> Float[Tensor, "*head_query"]:
        """−Σ weight · ln weight of each query, in nats: 0 looks at one key, ln n at n evenly.

        A sink's share is no weight and does not count.
        """

        def add(total: Tensor, head: ExactHead, rows: Positions, columns: range) -> None:
            logs = head.logs(rows, Positions(columns)).clamp_(min=LOWEST_LOG)
            total -= (logs.exp() * logs).sum(dim=1, keepdim=True)

        return self._streamed("entropy", rows, 1, add, limit)[..., 0]

    def output(
        self, rows: Selection = None, *, limit: Limit | None = LIMIT
    ) -> Float[Tensor, "*head_query value_dim"]:
        """Σ weight · value of each query: what the head hands on, before W_O. Needs values."""
        value = self.record.value
        if value is None:
            raise InputError(
                f"{self.name}: the values were not kept, so there is no output to compute.",
                hint="watch(model, values=True) keeps them.",
            )

        def add(total: Tensor, head: ExactHead, rows: Positions, columns: range) -> None:
            assert head.value is not None
            weights = head.weights(rows, Positions(columns))
            with torch._C._DisableAutocast():  # of whoever looks
                total += weights @ head.value[columns.start : columns.stop].to(weights.dtype)

        return self._streamed("output", rows, value.shape[3], add, limit)

    def words(self, *, limit: Limit | None = LIMIT) -> WordWeights:
        """Attention between words: summed into a word, averaged over the word's own tokens."""
        row_words, column_words = self._words(self.rows), self._words(self.columns)
        weights = self.rows.length * self.columns.length * len(self.places)
        self._check("words", weights, len(row_words) * len(column_words), limit)
        merged = self._result(len(row_words), len(column_words))
        for number, head in enumerate(self._exact()):
            for first, words in word_groups(row_words, BLOCK_ROWS):
                run = range(words[0].positions.start, words[-1].positions.stop)
                every = Positions(range(self.columns.length))
                tile = head.weights(Positions(run), every, precise=True)
                part = merge_rows(merge_columns(tile, column_words), words)
                merged[number, first : first + len(words)] = part
        return WordWeights(self._shown(merged), row_words, column_words)

    def cost(
        self,
        view: View = "map",
        rows: Selection = None,
        columns: Selection = None,
        *,
        size: int = 512,
    ) -> Cost:
        """Bytes and estimated seconds of a view, before anything is computed."""
        one_of("view", view, VIEWS)
        size = whole_number("size (cells)", size, least=1)
        row_places, column_places = self.rows.places(rows), self.columns.places(columns)
        key_dim = self.record.key.shape[3]
        if view in ("row", "column", "weights"):
            row_count = 1 if view == "row" else len(row_places)
            column_count = 1 if view == "column" else len(column_places)
            count = row_count * column_count
            return cost_of(count * len(self.places), key_dim, self._bytes(count))
        result = {
            "map": min(size, len(row_places)) * min(size, len(column_places)),
            "entropy": len(row_places),
            "output": len(row_places) * self.record.facts.value_dim,
            "words": len(row_places) * len(column_places),
        }[view]
        passes = 2 if view == "entropy" else 1
        return cost_of(self._seen_weights(row_places), key_dim, self._bytes(result), passes)

    def _exact(self) -> Iterator[ExactHead]:
        return (ExactHead(self.record, self.batch, place) for place in self.places)

    def _streamed(
        self,
        what: str,
        rows: Selection,
        width: int,
        add: Callable[[Tensor, ExactHead, Positions, range], None],
        limit: Limit | None,
    ) -> Tensor:
        """One vector for each row, summed over blocks of keys in float64."""
        places = self.rows.places(rows)
        self._check(what, self._seen_weights(places), 3 * len(places) * width, limit)
        totals = self._result(len(places), width, torch.float64)

        def fill(item: tuple[int, ExactHead, slice]) -> None:
            number, head, part = item
            some = places.part(part)
            for columns in head.blocks(some):
                add(totals[number, part], head, some, columns)

        self._share(fill, places, BLOCK_ROWS)
        result = totals.to(self._dtype)
        return self._shown(result[:, 0] if is_single(rows) else result)

    def _filled_at_once(self, tile: Tensor, rows: Positions, columns: Positions) -> bool:
        """Write the weights of several heads of a short text; False if they are to be shared."""
        numbers = len(rows) * self.record.key.shape[2]
        if numbers > SMALL or len(self.places) < 2:
            return False
        done = []

        def fill(heads: list[ExactHead]) -> None:
            whole = plain_of_heads(heads, rows)
            if whole is not None:
                tile.copy_(columns.within(whole[..., columns.run.start : columns.run.stop], 2))
                done.append(True)

        run_in_threads(fill, [list(self._exact())], tile.device, small=True)
        return bool(done)

    def _share(
        self,
        fill: Callable[[tuple[int, ExactHead, slice]], None],
        rows: Positions,
        step: int,
    ) -> None:
        """Every head's rows, a few at a time; the last first, as causal ones see the most."""
        items = [
            (number, head, slice(start, start + step))
            for number, head in enumerate(self._exact())
            for start in range(0, len(rows), step)[::-1]
        ]
        numbers = len(rows) * self.record.key.shape[2]
        run_in_threads(fill, items, self.record.query.device, small=numbers <= SMALL)

    def _check(self, what: str, weights: int, numbers: int, limit: Limit | None) -> None:
        """``weights`` are computed in all, ``numbers`` of each head are given back."""
        key_dim = self.record.key.shape[3]
        check_limit(f"{what} of {self.name}", weights, key_dim, self._bytes(numbers), limit)

    def _seen_weights(self, rows: Positions) -> int:
        """How many weights of these rows the rules leave to be computed, in all heads."""
        head = ExactHead(self.record, self.batch, self.places[0])
        counted = 0
        for start in range(0, len(rows), BLOCK_ROWS):
            some = rows.part(slice(start, start + BLOCK_ROWS))
            counted += len(some) * len(head.reach(some.run))
        return counted * len(self.places)

    def _bytes(self, numbers: int) -> int:
        return numbers * self._dtype.itemsize * len(self.places)

    @property
    def _dtype(self) -> torch.dtype:
        return torch.float64 if self.record.query.dtype == torch.float64 else torch.float32

    def _result(self, rows: int, width: int, dtype: torch.dtype | None = None) -> Tensor:
        shape = (len(self.places), rows, width)
        return torch.zeros(shape, dtype=dtype or self._dtype, device=self.record.query.device)

    def _shown(self, result: Tensor) -> Tensor:
        return result[0] if self.single else result

    def _passage(self, passages: tuple[Passage, ...]) -> Passage | None:
        return passages[self.batch] if passages else None

    def _words(self, axis: Axis) -> list[Word]:
        if axis.passage is None:
            raise InputError(
                f"{self.name}: no words, as the tokens of its {axis.name}s are not known.",
                hint="seen.label(tokenizer, text) names them.",
            )
        return words_of(axis.passage)
