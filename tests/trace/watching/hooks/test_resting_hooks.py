"""Hooks of layers whose steps were understood rest, and nothing is lost by that."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from clearhead.trace.watching.hooks import resting_hooks
from clearhead.trace.watching.hooks.resting_hooks import may_get_sources
from clearhead.trace.watching.watch import watch
from tests.trace.watching.waiting.test_inbox import llama, steps

STATES = torch.randn(1, 5, 24, generator=torch.Generator().manual_seed(7))


def layer(model: Any, number: int) -> torch.Tensor:
    """One block of the model, called by itself."""
    places = model.model.rotary_emb(STATES, torch.arange(5)[None])
    with torch.no_grad():
        return model.model.layers[number](STATES, position_embeddings=places)  # type: ignore[no-any-return]


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_they_rest_until_the_watch_ends(attention: str) -> None:
    model = llama(attention)
    with watch(model) as seen:
        before = hooks_of(model)
        steps(model)
        assert hooks_of(model) == before - 2 and len(resting_hooks._RESTING) == 2
        steps(model)  # a prompt again
    assert hooks_of(model) == 0 and not resting_hooks._RESTING
    assert [len(run.layers) for run in seen.runs] == [2, 2] and seen.missed == ""
    assert all(run.verify().exact for run in seen.runs)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_model_is_freed_at_once_after_its_watch(attention: str) -> None:
    model = llama(attention)
    known = weakref.ref(model)
    gc.collect()
    gc.disable()
    try:
        with watch(model) as seen:
            steps(model)
        del model
        assert known() is None and seen.verify().exact
    finally:
        gc.enable()


def test_a_thread_that_is_not_watched_is_named() -> None:
    model = llama("sdpa")
    with watch(model) as seen:
        steps(model)
        thread = threading.Thread(target=layer, args=(model, 1))
        thread.start()
        thread.join()
    assert "`model.layers.1.self_attn` ran in another thread" in seen.missed
    assert "layers.0" not in seen.missed and seen.verify().exact


def test_a_thread_that_is_watched_is_seen() -> None:
    model = llama("sdpa")
    with watch(model) as seen:
        steps(model)
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(steps, model))
        thread.start()
        thread.join()
    assert [run.records[0].query.shape[2] for run in seen.runs] == [11, 11] and seen.missed == ""


def test_a_layer_that_is_called_by_itself_is_a_run_of_its_own() -> None:
    model = llama("sdpa")
    plain = layer(model, 1)
    with watch(model) as seen:
        steps(model)
        assert torch.equal(layer(model, 1), plain)
    assert [layer.name for layer in seen.layers] == ["L1"] and seen.verify().exact
    assert [run.records[0].query.shape[2] for run in seen.runs] == [11, 5] and seen.missed == ""


def test_two_watches_each_have_their_own() -> None:
    model = llama("sdpa")
    with watch(model) as outer:
        steps(model)
        with watch(model) as inner:
            steps(model)
        steps(model)
    assert len(inner.runs) == 1 and inner.verify().exact and inner.missed == ""
    assert len(outer.runs) == 3 and outer.verify().exact and outer.missed == ""


def test_modules_that_may_be_given_another_sequence_keep_their_hooks() -> None:
    from transformers.models.bart.modeling_bart import BartAttention
    from transformers.models.llama.modeling_llama import LlamaAttention

    assert may_get_sources(BartAttention) and not may_get_sources(LlamaAttention)


def test_a_kernel_that_is_replaced_half_way_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As libraries do that bring a kernel of their own."""
    model, functional = llama("sdpa"), nn.functional
    usual = functional.scaled_dot_product_attention

    def other(query: Any, *args: Any, **kwargs: Any) -> Any:
        return usual(query * 1.3, *args, **kwargs)

    def change(cache: transformers.DynamicCache) -> None:
        if cache.get_seq_length() == 8:
            monkeypatch.setattr(functional, "scaled_dot_product_attention", other)

    with watch(model) as seen:
        steps(model, change)
    assert "`model.layers.0.self_attn` was refused: its output is not what" in seen.missed
    assert not seen.records or seen.verify().exact


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_step_that_raises_leaves_everything_as_it_was(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = llama(attention)
    plain = steps(model)
    calls, usual = [0], transformers.DynamicCache.get_seq_length

    def raising(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 9:
            raise KeyError("of the model")
        return function(*args, **kwargs)

    with watch(model) as seen:
        steps(model)
        inside = torch.nn.functional
        name = "scaled_dot_product_attention" if attention == "sdpa" else "softmax"
        function = getattr(inside, name)
        with monkeypatch.context() as patched:
            patched.setattr(inside, name, raising)
            with pytest.raises(KeyError, match="of the model"):
                steps(model)
        assert torch.empty(2, device="meta").is_meta  # operations find their devices as before
        again = steps(model)
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
    assert seen.verify().exact and transformers.DynamicCache.get_seq_length is usual
