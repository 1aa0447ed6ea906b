from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from recorded_weights import weights_of
from torch import Tensor

from clearhead.attention import masks
from clearhead.attention.steps import attention_steps
from clearhead.trace.chunks import Chunk, Parents
from clearhead.trace.log_sum import log_sum
from clearhead.trace.mask_rules import RuleBook
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import Piece, RowBias, RowMask
from clearhead.trace.sighting import Sighting

BATCH, HEADS, KV_HEADS, QUERIES, KEYS, WIDTH = 2, 6, 3, 5, 7, 11


def facts(**changes: object) -> LayerFacts:
    given = {
        "name": "L0", "path": "blocks.0", "kind": "self", "causal": False, "heads": HEADS,
        "kv_heads": KV_HEADS, "key_dim": WIDTH, "value_dim": WIDTH, "scale": 0.3, "softcap": None,
        "dtype": torch.float32, "note": "",
    }  # fmt: skip
    return LayerFacts(**{**given, **changes})  # type: ignore[arg-type]


def tensors(queries: int = QUERIES, keys: int = KEYS) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(BATCH, HEADS, queries, WIDTH), torch.randn(BATCH, KV_HEADS, keys, WIDTH)


def sighting(queries: int = QUERIES, keys: int = KEYS, **options: object) -> Sighting:
    query, key = tensors(queries, keys)
    return Sighting(query, key, None, scale=0.3, output=None, **options)  # type: ignore[arg-type]


def record_of(seen: Sighting) -> LayerRecord:
    rules = RuleBook().of(seen)
    return LayerRecord(
        facts(softcap=seen.softcap), seen.query, seen.key, log_sum(seen), pieces=[rules.piece]
    )


def spelled(piece: Piece, batch: int) -> Tensor:
    seen = None if piece.mask is None else piece.mask.block(batch, range(QUERIES), range(KEYS))
    return torch.ones(1, QUERIES, KEYS, dtype=torch.bool) if seen is None else seen


@given(st.data())
def test_any_mask_comes_back_from_its_rule(data: st.DataObject) -> None:
    cells = st.lists(st.booleans(), min_size=KEYS, max_size=KEYS)
    shape = data.draw(st.sampled_from([(1, 1), (BATCH, 1), (1, HEADS), (BATCH, HEADS)]))
    rows = shape[0] * shape[1] * QUERIES
    given_mask = torch.tensor(data.draw(st.lists(cells, min_size=rows, max_size=rows)))
    mask = given_mask.view(*shape, QUERIES, KEYS)
    rules = RuleBook().of(sighting(mask=mask))
    whole = mask.expand(BATCH, HEADS, QUERIES, KEYS)
    for batch in range(BATCH):
        assert torch.equal(spelled(rules.piece, batch).expand(HEADS, -1, -1), whole[batch])


@pytest.mark.parametrize(
    "rule",
    [
        masks.causal(),
        masks.causal() & masks.window(2),
        masks.window(1, 2),
        masks.lengths(torch.tensor([7, 4])),
        masks.causal(offset=torch.tensor([2, 0])),
        masks.documents(torch.tensor([0, 0, 1, 1, 1, 2, 2])),
        masks.causal() & masks.padding(torch.tensor([[False, False] + [True] * 5, [True] * 7])),
    ],
)
def test_usual_masks_are_kept_linear_in_tokens(rule: masks.Mask) -> None:
    mask = rule.tensor(QUERIES, KEYS)
    mask = mask[(None,) * (4 - mask.ndim)]
    for seen in (sighting(mask=mask), sighting(rule=rule)):
        piece = RuleBook().of(seen).piece
        assert piece.mask is not None and piece.mask.dense is None
        for batch in range(BATCH):
            expected = mask[batch if mask.shape[0] > 1 else 0, 0]
            assert torch.equal(spelled(piece, batch)[0], expected)


def test_biases_of_key_or_distance_are_kept_linear_in_tokens() -> None:
    slope = torch.tensor([0.5, 0.25, 0.125, 1.0, 2.0, 3.0])[:, None, None]
    of_key = (slope * torch.arange(KEYS)).expand(1, -1, QUERIES, -1)
    distance = torch.arange(KEYS) - torch.arange(QUERIES)[:, None]
    of_distance = (slope * distance.float().sin())[None]
    hidden = masks.causal().tensor(QUERIES, KEYS)
    lowest = torch.finfo(torch.float32).min
    for bias, kept in ((of_key, "numbers"), (of_distance, "diagonals")):
        piece = RuleBook().of(sighting(bias=bias)).piece
        assert piece.bias is not None and piece.mask is None
        assert torch.equal(piece.bias.block(1, range(QUERIES), range(KEYS)), bias[0])
        assert getattr(piece.bias, kept).numel() <= HEADS * (QUERIES + KEYS)
    merged = RuleBook().of(sighting(mask=of_key.masked_fill(~hidden, lowest))).piece
    assert merged.mask is not None and merged.bias is not None and merged.bias.numbers is not None
    assert merged.bias.numbers.shape == (1, HEADS, 1, KEYS)
    assert torch.equal(spelled(merged, 0)[0], hidden)


@given(
    st.sampled_from([None, "causal", "window", "padding"]),
    st.sampled_from([None, "key", "distance", "any"]),
    st.sampled_from([None, 0.9]),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_the_formula_gives_the_weights_of_the_plain_steps(
    mask: str | None, bias: str | None, softcap: float | None, sinks: bool, dtype: torch.dtype
) -> None:
    query, key = (part.to(dtype) for part in tensors())
    rule = {
        None: None,
        "causal": masks.causal(),
        "window": masks.causal() & masks.window(2),
        "padding": masks.lengths(torch.tensor([7, 3])),
    }[mask]
    generator = torch.Generator().manual_seed(1)
    numbers = {
        None: None,
        "key": torch.randn(1, HEADS, 1, KEYS, generator=generator, dtype=dtype),
        "distance": (torch.arange(KEYS) - torch.arange(QUERIES)[:, None]).to(dtype)[None, None],
        "any": torch.randn(1, HEADS, QUERIES, KEYS, generator=generator, dtype=dtype),
    }[bias]
    sink = torch.randn(HEADS, generator=generator, dtype=dtype) if sinks else None
    options = {"bias": numbers, "softcap": softcap, "sinks": sink}
    expected = attention_steps(query, key, key, mask=rule, scale=0.3, **options).weights  # type: ignore[arg-type]
    seen = Sighting(query, key, None, scale=0.3, output=None, rule=rule, **options)  # type: ignore[arg-type]
    got = weights_of(record_of(seen))
    assert (got - expected).abs().max() < (1e-6 if dtype == torch.float32 else 1e-14)


def test_a_finite_mask_spreads_a_blind_row_evenly() -> None:
    lowest = torch.finfo(torch.float32).min
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = lowest
    rules = RuleBook().of(sighting(mask=mask))
    assert rules.even is not None and rules.even.tolist() == [[False, False, True, False, False]]
    assert rules.notes == (
        "rows that see nothing are spread evenly over all keys, as the model does it",
    )
    with_infinity = RuleBook().of(sighting(mask=mask.masked_fill(mask < 0, -torch.inf)))
    assert with_infinity.even is None
    assert not spelled(with_infinity.piece, 0)[0, 2].any()


def test_one_mask_is_looked_at_once() -> None:
    book, mask = RuleBook(), masks.causal().tensor(QUERIES, KEYS)[None, None]
    first = book.of(sighting(mask=mask))
    assert book.of(sighting(mask=mask)) is first
    mask[..., 0, :] = True
    assert book.of(sighting(mask=mask)) is not first


def step(rows: int, new_keys: int, piece: Piece, parents: Parents | None = None) -> Chunk:
    query, key = (
        torch.randn(BATCH, HEADS, rows, WIDTH),
        torch.randn(BATCH, KV_HEADS, new_keys, WIDTH),
    )
    return Chunk(query, key, None, torch.randn(BATCH, HEADS, rows), None, piece, parents)


def test_rows_are_appended_and_rules_joined() -> None:
    query, key = tensors(4, 4)
    causal = RowMask(torch.zeros(1, 4, dtype=torch.long), torch.arange(1, 5)[None])
    record = LayerRecord(facts(), query, key, query.sum(-1), pieces=[Piece(4, 4, causal)])
    chunks = [step(1, 1, Piece(1, 5)), step(1, 1, Piece(1, 6))]
    for chunk in chunks:
        record.append(chunk)
    assert (record.rows, record.keys) == (6, 6)
    assert torch.equal(record.query[:, :, 4:5], chunks[0].query)
    assert torch.equal(record.key[:, :, 5:], chunks[1].key)
    assert len(record.pieces) == 1
    seen = record.visible(0, range(6), range(6))
    assert seen is not None
    assert torch.equal(seen[0], torch.ones(6, 6, dtype=torch.bool).tril())
    assert record.visible(1, range(5, 6), range(6)) is None
    record.truncate(5, 5)
    assert record.query.shape[2] == record.key.shape[2] == 5
    assert record.visible(0, range(4, 5), range(5)) is None


def test_biases_by_distance_grow_with_the_steps() -> None:
    def bias(row: int, keys: int) -> Tensor:
        return (torch.arange(keys) - row).float().cos()[None, None, None].expand(1, HEADS, 1, -1)

    query, key = tensors(1, 1)
    pieces = [Piece(1, n, None, RowBias(bias(n - 1, n).contiguous())) for n in range(1, 7)]
    record = LayerRecord(facts(), query, key, query.sum(-1), pieces=pieces[:1])
    for piece in pieces[1:]:
        record.append(step(1, 1, piece))
    assert len(record.pieces) == 1
    got = record.bias(0, range(6), range(6))
    assert got is not None
    for row in range(6):
        assert torch.equal(got[:, row, : row + 1], bias(row, row + 1)[0, :, 0])


def test_beams_take_the_past_of_the_one_they_go_on_from() -> None:
    query, key = tensors(2, 2)
    record = LayerRecord(facts(), query, key, query.sum(-1))
    record.append(step(1, 1, Piece(1, 3), Parents(torch.tensor([1, 1]))))
    middle = record._chunks[-1].key
    record.append(step(1, 1, Piece(1, 4), Parents(torch.tensor([1, 0]))))
    assert torch.equal(record.key[:, :, :2], key[[1, 1]])
    assert torch.equal(record.key[:, :, 2:3], middle[[1, 0]])


def test_kept_heads_are_found_by_their_number() -> None:
    query, key = tensors()
    record = LayerRecord(
        facts(), query[:, [1, 4]], key[:, [0, 2]], query.sum(-1)[:, [1, 4]], head_numbers=(1, 4)
    )
    assert record.head_index(4) == 1
    assert record.head_index(2) is None
    assert record.nbytes == 4 * BATCH * 2 * (QUERIES * WIDTH + KEYS * WIDTH + QUERIES)
