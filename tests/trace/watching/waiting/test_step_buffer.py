from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.waiting import step_buffer
from clearhead.trace.watching.waiting.step_buffer import Joiner, StepBuffer, by_layer, restored
from clearhead.trace.watching.watch import watch

HEADS, WIDTH = 3, 5


def steps(count: int, past: int = 4, batch: int = 1) -> list[ObservedCall]:
    """Steps over one growing past, with the weights that they have."""
    torch.manual_seed(count)
    key, value = torch.randn(2, batch, HEADS, past + count, WIDTH)
    calls = []
    for number in range(count):
        keys = past + number + 1
        query = torch.randn(batch, HEADS, 1, WIDTH)
        scores = query @ key[:, :, :keys].mT
        weights = torch.softmax(scores, dim=-1)
        calls.append(
            ObservedCall(
                query, key[:, :, :keys].clone(), value[:, :, :keys].clone(), 1.0,
                weights @ value[:, :, :keys], torch.logsumexp(scores, dim=-1), weights=weights,
            )
        )  # fmt: skip
    return calls


@pytest.fixture(params=[0, 1 << 20], ids=["let go", "held"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Earlier keys are let go at once, or held as long as they wait."""
    monkeypatch.setattr(step_buffer, "MOST_HELD", request.param)
    return int(request.param)


def waiting(calls: list[ObservedCall], path: str = "attn") -> StepBuffer:
    buffer, place = StepBuffer(), Frame(path, nn.Identity(), True, False)
    for forward, call in enumerate(calls):
        assert buffer.take(place, call, False, forward)
    return buffer


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_are_one_call_that_sees_the_keys_up_to_each(batch: int, held: int) -> None:
    calls = steps(7, batch=batch)
    joined = Joiner().together(by_layer(waiting(calls).empty())[0])
    assert joined is not None and joined.sizes == (7, 11) and joined.rule is not None
    assert joined.weights is not None and joined.logsum is not None
    for number, call in enumerate(calls):
        assert call.weights is not None and call.logsum is not None
        row = joined.weights[:, :, number]
        assert torch.equal(row[..., : 5 + number], call.weights[:, :, 0])
        assert not row[..., 5 + number :].any()
        assert torch.equal(joined.logsum[:, :, number], call.logsum[:, :, 0])


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_with_other_keys_are_not_one_call(batch: int, held: int) -> None:
    calls, place = steps(6, batch=batch), Frame("attn", nn.Identity(), True, False)
    buffer = waiting(calls[:3])
    calls[3].key = calls[3].key.flip(-1)
    assert buffer.take(place, calls[3], False, 3) is bool(held)
    if held:
        layer = by_layer(buffer.empty())[0]
        assert Joiner().together(layer) is None and restored(layer) == layer


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_with_other_values_are_not_one_call(batch: int, held: int) -> None:
    calls = steps(6, batch=batch)
    calls[3].value = calls[3].value.flip(-1) if calls[3].value is not None else None
    layer = by_layer(waiting(calls).empty())[0]
    assert Joiner().together(layer) is None
    # Without their own, they had values that nobody has any more.
    assert restored(layer) == (layer if held else [layer[-1]])


@pytest.mark.parametrize("part", ["query", "weights"])
def test_what_was_written_to_since_is_not_put_together(part: str, held: int) -> None:
    calls = steps(3)
    buffer = waiting(calls)
    getattr(calls[1], part).mul_(1.0)
    layer = by_layer(buffer.empty())[0]
    assert Joiner().together(layer) is None
    assert [step.unchanged for step in restored(layer)] == [True, False, True]


@pytest.mark.parametrize("part", ["key", "value"])
def test_keys_that_were_written_to_do_not_go_on(part: str, held: int) -> None:
    calls, place = steps(4), Frame("attn", nn.Identity(), True, False)
    buffer = waiting(calls[:2])
    getattr(calls[1], part).mul_(1.0)
    assert buffer.take(place, calls[2], False, 2) is bool(held)
    assert Joiner().together(by_layer(buffer.empty())[0]) is None


def test_keys_of_earlier_steps_are_let_go_and_can_be_had_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_buffer, "MOST_HELD", 0)
    calls = steps(5)
    asked = [(call.key.clone(), call.value) for call in calls]
    layer = by_layer(waiting(calls).empty())[0]
    assert [call.key.numel() for call in calls] == [0, 0, 0, 0, calls[-1].key.numel()]
    for step, (key, value) in zip(restored(layer), asked, strict=True):
        assert step.unchanged and torch.equal(step.call.key, key)
        assert step.call.value is not None and value is not None
        assert torch.equal(step.call.value, value)


def test_calls_that_do_not_wait() -> None:
    calls, place = steps(5), Frame("attn", nn.Identity(), True, False)
    buffer = StepBuffer()
    assert buffer.take(place, calls[0], False, 0)
    assert not buffer.take(place, calls[1], False, 0)  # the same forward: another layer
    assert not buffer.take(place, calls[2], False, 1)  # a step is missing
    assert not buffer.take(place, calls[1], True, 1)
    cache = torch.zeros(1, HEADS, 30, WIDTH)
    calls[1].key = cache[:, :, :6]  # a view of what is written to later
    assert not buffer.take(place, calls[1], False, 1)
    states = torch.zeros(1, HEADS, 4, WIDTH)
    prompt = ObservedCall(states, states, states, 1.0, None)
    assert not buffer.take(place, prompt, False, 1)
    assert len(buffer.empty()) == 1 and not buffer.steps


def llama(attention: str, layers: int = 2) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=31, hidden_size=24, intermediate_size=20, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, attn_implementation=attention,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def generate(model: Any, ids: Tensor, count: int) -> Tensor:
    found: Tensor = model.generate(
        ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0
    )
    return found


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_records_are_those_of_steps_recorded_one_by_one(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ids = llama(attention), torch.randint(3, 30, (1, 5))
    with watch(model, values=True) as many:
        generate(model, ids, 9)
    monkeypatch.setattr(StepBuffer, "take", lambda *_, **__: False)
    with watch(model, values=True) as single:
        generate(model, ids, 9)
    assert many.missed == single.missed == "" and many.verify().exact
    for one, other in zip(many.records, single.records, strict=True):
        assert one.facts == other.facts and one.rows == other.rows == 13
        for name in ("query", "key", "value", "output"):
            assert torch.equal(getattr(one, name), getattr(other, name))
        assert (one.logsum - other.logsum).abs().max() < 1e-6
        assert torch.equal(many[one.facts.name].weights(), single[one.facts.name].weights())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_look_inside_the_block_sees_every_step_so_far(attention: str) -> None:
    model, ids = llama(attention), torch.randint(3, 30, (1, 5))
    with torch.no_grad(), watch(model) as seen:
        known = model(ids, use_cache=True)
        record = seen.records[0]
        for count in range(1, 4):
            known = model(ids[:, :1], past_key_values=known.past_key_values, use_cache=True)
            assert record.rows == record.keys == 5 + count
            assert seen.layers[-1].queries == 5 + count and len(seen.runs) == 1
            assert seen["L1H3"].row(-1).shape == (5 + count,)
    assert seen.verify().exact


def test_two_continuations_in_turns_are_runs_of_their_own() -> None:
    model, ids = llama("sdpa"), torch.randint(3, 30, (1, 5))
    with torch.no_grad(), watch(model) as seen:
        past = model(ids, use_cache=True).past_key_values
        caches = [copy.deepcopy(past) for _ in "ab"]
        for token in (7, 11, 13):
            for number, cache in enumerate(caches):
                model(torch.tensor([[token + number]]), past_key_values=cache, use_cache=True)
    assert seen.missed == "" and all(run.verify().exact for run in seen.runs)
    assert max(run.layers[0].queries for run in seen.runs) >= 6


def test_an_output_that_is_scaled_in_place_is_kept_as_it_came() -> None:
    model, ids = llama("sdpa"), torch.randint(3, 30, (1, 5))

    def scale(_module: nn.Module, args: Any) -> None:
        args[0].mul_(0.5)

    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_pre_hook(scale)
    with watch(model) as seen:
        generate(model, ids, 6)
    assert seen.missed == "" and seen.verify().exact


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_of_which_some_let_go_are_one_call(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, place = steps(7, batch=batch), Frame("attn", nn.Identity(), True, False)
    buffer = waiting(calls[:4])
    monkeypatch.setattr(step_buffer, "MOST_HELD", 0)
    for forward, call in enumerate(calls[4:], start=4):
        assert buffer.take(place, call, False, forward)
    layer = by_layer(buffer.empty())[0]
    assert [step.brought is None for step in layer] == [True, True, True, False, False, False, True]
    joined = Joiner().together(layer)
    assert joined is not None and joined.sizes == (7, 11)
    calls[1].key = calls[1].key + 1
    assert Joiner().together(layer) is None
    assert [step.keys for step in restored(layer)] == [5, 6, 7, 8, 9, 10, 11]
