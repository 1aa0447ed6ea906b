from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.trace.chunks import Parents
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.watching.stitching import GrowingRecord, NewRows, Runs, continuation

BATCH, HEADS, WIDTH = 3, 2, 5
KEYS = torch.randn(BATCH, HEADS, 11, WIDTH, generator=torch.Generator().manual_seed(0))


def rows(key: Tensor, queries: int, forward: int = 1, **changes: Any) -> NewRows:
    query = key[:, :, key.shape[2] - queries :] + 1
    given: dict[str, Any] = {
        "query": query, "key": key, "value": None, "logsum": query.sum(-1), "output": None,
        "piece": RowRules(queries, key.shape[2]), "cross": False, "forward": forward,
    }  # fmt: skip
    return NewRows(**{**given, **changes})


def record_of(first: NewRows) -> LayerRecord:
    facts = LayerFacts(
        "L0", "", "self", True, HEADS, HEADS, WIDTH, WIDTH, 1.0, None, torch.float32, ""
    )
    return LayerRecord(facts, first.query, first.key, first.logsum, pieces=[first.piece])


def growing(first: NewRows) -> GrowingRecord:
    return GrowingRecord(record_of(first), first)


def keep(tensor: Tensor) -> Tensor:
    return tensor.clone()


def test_a_cached_step_adds_its_new_keys() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    step = rows(KEYS[:, :, :9], 2, forward=2)
    found = continuation(prompt, step)
    assert found is not None and (found.known, found.cropped) == (7, False)
    found.append_to(prompt.record, Parents(), keep)
    assert prompt.record.rows == prompt.record.keys == 9
    assert torch.equal(prompt.record.key, KEYS[:, :, :9])
    assert torch.equal(prompt.record.query, KEYS[:, :, :9] + 1)


def test_other_keys_shapes_or_dtypes_continue_nothing() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    changed = KEYS[:, :, :9].clone()
    changed[1, 0, 6, 2] += 1e-3
    for other in (changed, KEYS[:2, :, :9], KEYS[..., :3][:, :, :9], KEYS[:, :, :9].double()):
        assert continuation(prompt, rows(other, 2)) is None
    assert continuation(prompt, rows(KEYS[:, :, :7], 7)) is None  # a prompt again


def test_beams_continue_the_sequence_whose_key_they_have() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    order = torch.tensor([2, 0, 2])
    step = torch.cat([KEYS[order, :, :7], KEYS[:, :, 7:8]], dim=2)
    found, parents = continuation(prompt, rows(step, 1, forward=2)), Parents()
    assert found is not None
    found.append_to(prompt.record, parents, keep)
    assert parents.order is not None and parents.order.tolist() == [2, 0, 2]
    assert torch.equal(prompt.record.key, step)


def test_a_cropped_cache_forgets_later_rows() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    step = torch.cat([KEYS[:, :, :4], KEYS[:, :, 9:10]], dim=2)
    found = continuation(prompt, rows(step, 1, forward=2))
    assert found is not None and found.cropped
    found.append_to(prompt.record, Parents(), keep)
    assert prompt.record.rows == 5 and torch.equal(prompt.record.key, step)


def test_a_sliding_cache_is_shifted_to_its_place() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    found = continuation(prompt, rows(KEYS[:, :, 4:8], 1, forward=2))  # keys 0 … 3 were dropped
    assert found is not None and found.known == 3
    found.append_to(prompt.record, Parents(), keep)
    assert torch.equal(prompt.record.key, KEYS[:, :, :8])
    seen = prompt.record.visible(0, range(7, 8), range(8))
    assert seen is not None and seen[0, 0].tolist() == [False] * 4 + [True] * 4


def test_sequences_of_different_lengths_write_into_their_cache() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    lengths = torch.tensor([7, 5, 6])
    step = torch.cat([KEYS[:, :, :7], torch.zeros(BATCH, HEADS, 1, WIDTH)], dim=2)
    for sequence, length in enumerate(lengths.tolist()):
        step[sequence, :, length] = 4.0
    mask = RowMask(torch.zeros(BATCH, 1, dtype=torch.long), (lengths + 1)[:, None])
    found = continuation(prompt, rows(step, 1, forward=2, piece=RowRules(1, 8, mask)))
    assert found is not None and found.lengths is not None
    assert found.lengths.tolist() == [7, 5, 6]
    found.append_to(prompt.record, Parents(), keep)
    assert prompt.record.keys == 8 and torch.equal(prompt.record.key, step)


def test_cross_attention_continues_over_the_same_keys_in_a_later_forward() -> None:
    source = rows(KEYS, 1, cross=True)
    growing_source = growing(source)
    assert continuation(growing_source, source) is None
    found = continuation(growing_source, rows(KEYS, 1, forward=2, cross=True))
    assert found is not None and found.known == 11
    assert continuation(growing_source, rows(KEYS[:, :, :10], 1, forward=2, cross=True)) is None


def test_runs_and_shared_modules() -> None:
    runs, occurrences = Runs(), []

    def add(new: NewRows) -> LayerRecord | None:
        def new_record(occurrence: int) -> LayerRecord:
            occurrences.append(occurrence)
            return record_of(new)

        return runs.add("layer", new, keep, new_record)

    first = add(rows(KEYS[:, :, :7], 7, forward=1))
    second = add(rows(KEYS[:, :, :7] * 2, 7, forward=1))  # the module again: another layer
    assert occurrences == [0, 1] and runs.records == [first, second]
    assert add(rows(KEYS[:, :, :8], 1, forward=2)) is first
    assert add(rows(KEYS[:, :, :5], 5, forward=3)) not in (first, second)
    assert runs.earlier == [[first, second]] and runs.first_forward == 3
    assert len(runs.records) == 1 and occurrences == [0, 1, 0]
    runs.forget()
    assert runs.records == [] and runs.earlier == []
