from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.chunks import Parents
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.watching.new_rows import NewRows
from clearhead.trace.watching.stitching import GrowingRecord, continuation
from clearhead.trace.watching.watch import watch

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


def test_a_mask_that_hides_the_last_keys_of_some_sequences_makes_no_lengths() -> None:
    prompt = growing(rows(KEYS[:, :, :7], 7))
    high = torch.tensor([8, 6, 8])[:, None]
    mask = RowMask(torch.zeros(BATCH, 1, dtype=torch.long), high)
    found = continuation(prompt, rows(KEYS[:, :, :8], 1, 2, piece=RowRules(1, 8, mask)))
    assert found is not None and found.lengths is None and found.known == 7


def test_two_texts_that_begin_and_end_alike_are_two_runs() -> None:
    """Keys of a first layer follow from the tokens alone: the ones in between tell them apart."""
    torch.manual_seed(0)
    layer = Stepwise()
    one, other = torch.randn(2, 1, 5, 6)
    other[:, 0], other[:, -1] = one[:, 0], one[:, -1]
    with watch(layer) as seen:
        layer(one, one)
        last = torch.randn(1, 1, 6)
        layer(last, torch.cat([other, last], dim=1))
    assert len(seen.runs) == 2 and seen.verify().exact
    assert seen["L0"].record.shape[2] == 1


def test_blocks_of_keys_in_one_forward_are_calls_of_their_own() -> None:
    """The last keys of a block are those of the text, as in a sliding cache; the others are not."""
    torch.manual_seed(0)
    layer, states = Stepwise(), torch.randn(1, 12, 6)

    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, states: Tensor) -> Tensor:
            first: Tensor = self.layer(states[:, :2], states)
            some = torch.cat([states[:, :2], states[:, 8:], states[:, 4:6]], dim=1)
            second: Tensor = self.layer(states[:, 6:8], some)
            return first + second

    model = Blocks()
    with watch(model) as seen:
        model(states)
    assert [(one.queries, one.keys) for one in seen.layers] == [(2, 12), (2, 8)]
    assert seen.verify().exact


class Stepwise(nn.Module):
    """One head, whose queries and keys are given."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query, key = query[:, None], key[:, None]
        output: Tensor = nn.functional.scaled_dot_product_attention(query, key, key)
        return output.squeeze(1)


class Warmer(nn.Module):
    """Attention with a cache whose scale may change from call to call, as with temperatures."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused, self.scale = fused, 0.5
        self.keys = torch.zeros(1, 2, 0, 3)

    def forward(self, states: Tensor) -> Tensor:
        self.keys = torch.cat([self.keys, states], dim=2)
        hidden = torch.full((states.shape[2], self.keys.shape[2]), -torch.inf)
        hidden = hidden.triu(self.keys.shape[2] - states.shape[2] + 1)
        if self.fused:
            return nn.functional.scaled_dot_product_attention(
                states, self.keys, self.keys, attn_mask=hidden, scale=self.scale
            )
        scores = states @ self.keys.mT * self.scale + hidden
        return torch.softmax(scores, dim=-1) @ self.keys


@pytest.mark.parametrize("fused", [False, True])
def test_a_call_with_another_scale_is_a_run_of_its_own(fused: bool) -> None:
    torch.manual_seed(0)
    model = Warmer(fused)
    with watch(model) as seen:
        for scale, rows in ((0.5, 4), (0.5, 1), (2.0, 1), (2.0, 1)):
            model.scale = scale
            model(torch.randn(1, 2, rows, 3))
    assert [run.layers[0].queries for run in seen.runs] == [5, 2] and seen.missed == ""
    assert all(run.verify().exact for run in seen.runs)
    weights = torch.softmax(model.keys[0, 1, -1] @ model.keys[0, 1].T * 2.0, dim=-1)
    assert torch.allclose(seen["L0H1"].row(-1), weights, atol=1e-6)
