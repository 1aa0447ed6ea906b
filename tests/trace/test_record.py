from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clearhead.attention import masks
from clearhead.attention.steps import attention_steps
from clearhead.trace.chunks import Chunk, Parents
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowBias, RowMask, RowRules
from clearhead.trace.watching.log_sum_exp import log_sum_exp
from clearhead.trace.watching.mask_rules import RuleCache
from clearhead.trace.watching.observed_call import ObservedCall
from tests.shared.recorded_weights import weights_of

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


def observed(queries: int = QUERIES, keys: int = KEYS, **options: object) -> ObservedCall:
    query, key = tensors(queries, keys)
    return ObservedCall(query, key, None, scale=0.3, output=None, **options)  # type: ignore[arg-type]


def record_of(seen: ObservedCall) -> LayerRecord:
    rules = RuleCache().of(seen)
    logsum, shape = log_sum_exp(seen), facts(softcap=seen.softcap)
    return LayerRecord(shape, seen.query, seen.key, logsum, pieces=[rules.piece], sinks=seen.sinks)


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
    seen = ObservedCall(query, key, None, scale=0.3, output=None, rule=rule, **options)  # type: ignore[arg-type]
    got = weights_of(record_of(seen))
    assert (got - expected).abs().max() < (1e-6 if dtype == torch.float32 else 1e-14)


def step(rows: int, new_keys: int, piece: RowRules, parents: Parents | None = None) -> Chunk:
    query, key = (
        torch.randn(BATCH, HEADS, rows, WIDTH),
        torch.randn(BATCH, KV_HEADS, new_keys, WIDTH),
    )
    return Chunk(query, key, None, torch.randn(BATCH, HEADS, rows), None, piece, parents)


def test_rows_are_appended_and_rules_joined() -> None:
    query, key = tensors(4, 4)
    causal = RowMask(torch.zeros(1, 4, dtype=torch.long), torch.arange(1, 5)[None])
    record = LayerRecord(facts(), query, key, query.sum(-1), pieces=[RowRules(4, 4, causal)])
    chunks = [step(1, 1, RowRules(1, 5)), step(1, 1, RowRules(1, 6))]
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
    pieces = [RowRules(1, n, None, RowBias(bias(n - 1, n).contiguous())) for n in range(1, 7)]
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
    record.append(step(1, 1, RowRules(1, 3), Parents(torch.tensor([1, 1]))))
    middle = record._chunks[-1].key
    record.append(step(1, 1, RowRules(1, 4), Parents(torch.tensor([1, 0]))))
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
