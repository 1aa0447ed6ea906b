from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.attention.dot_product import attention
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watch import watch
from clearhead.trace.watching.watchers import (
    add_watcher,
    collecting,
    is_watching,
    notify,
    observe,
    remove_watcher,
    unread_by,
    watchers,
)


class Spy:
    """A watcher that writes down what it hears."""

    def __init__(self) -> None:
        self.open, self.calls, self.reasons = True, list[Any](), list[str]()

    def keep(self, observed: ObservedCall) -> None:
        self.calls.append(observed)

    def refuse(self, reason: str, place: object = None) -> None:
        self.reasons.append(reason)

    def explain(self, reason: str) -> None: ...

    def happened(self) -> None: ...

    def place(self) -> None: ...

    def module(self) -> None: ...

    def takes(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        return 0

    def put(self, calls: Any, result: Any, args: Any, kwargs: Any, function: Any) -> None: ...

    def put_alone(self, result: Any, args: Any, kwargs: Any) -> None: ...


def call() -> ObservedCall:
    states = torch.zeros(1, 1, 2, 3)
    return ObservedCall(states, states, states, scale=1.0, output=states)


def test_calls_go_to_open_watchers_or_to_the_outer_door() -> None:
    spy = Spy()
    add_watcher(spy)
    with collecting() as calls:
        notify(call())
    assert len(calls.observed()) == 1 and spy.calls == []
    notify(call())
    spy.open = False
    notify(call())
    assert len(spy.calls) == 1 and watchers() == ()
    remove_watcher(spy)
    assert not is_watching()


def test_arguments_that_nobody_thought_of_are_not_put_down_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy()
    add_watcher(spy)
    monkeypatch.setattr(spy, "takes", lambda function, args, kwargs: kwargs["way"])
    assert unread_by(call, (), {"way": 2}) == (spy, 2)
    assert unread_by(call, (), {}) == (None, 0)
    with collecting():
        assert unread_by(call, (), {"way": 2}) == (None, 0)
    remove_watcher(spy)
    assert unread_by(call, (), {"way": 2}) == (None, 0)


def test_whatever_fails_in_an_observer_becomes_a_reason() -> None:
    spy = Spy()
    add_watcher(spy)

    def fail() -> None:
        assert not is_watching()  # what an observer computes is not observed
        raise ValueError("odd\nand long")

    observe(fail)
    remove_watcher(spy)
    assert spy.reasons == ["watching it failed: ValueError: odd"]


class Net(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(states, states, states)


STATES = torch.randn(1, 2, 5, 8)


def test_watches_may_end_in_any_order() -> None:
    one, two = Net(), Net()
    first, second = watch(one), watch(two)
    seen, also = first.__enter__(), second.__enter__()
    one(STATES)
    first.__exit__(None, None, None)
    two(STATES)
    second.__exit__(None, None, None)
    assert len(seen.layers) == len(also.layers) == 1 and watchers() == ()
    with watch(one) as again:
        one(STATES)
    assert len(again.layers) == 1


def test_tasks_see_their_own() -> None:
    async def run(net: Net, wait: float) -> int:
        with watch(net) as seen:
            await asyncio.sleep(wait)
            net(STATES)
            await asyncio.sleep(0.02 - wait)
        return len(seen.runs)

    async def both() -> list[int]:
        net = Net()
        return list(await asyncio.gather(run(net, 0.01), run(net, 0.0), run(Net(), 0.005)))

    with ThreadPoolExecutor(1) as thread:  # this one may have a loop of its own: a browser's
        assert thread.submit(lambda: asyncio.run(both())).result() == [1, 1, 1]


@pytest.mark.parametrize("copied", [True, False])
def test_a_thread_is_seen_in_a_copy_of_the_context_and_named_otherwise(copied: bool) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, states: Tensor) -> Tensor:
            return torch.nn.functional.scaled_dot_product_attention(states, states, states)

    net = nn.Sequential(Attention())
    with watch(net) as seen, torch.no_grad():
        context = contextvars.copy_context()
        run = (lambda: context.run(net, STATES)) if copied else (lambda: net(STATES))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(seen.layers) == int(copied)
    assert ("`0` ran in another thread or task" in seen.missed) is not copied


@pytest.mark.parametrize("way", ["sdpa", "softmax", "own"])
@pytest.mark.parametrize("transform", ["grad", "vjp"])
def test_a_cache_that_keeps_tensors_of_torch_func(way: str, transform: str) -> None:
    """What cannot be kept is named; the next forward, with that cache, is seen."""

    class Cached(nn.Module):
        keys: Tensor | None = None

        def forward(self, states: Tensor) -> Tensor:
            self.keys = states if self.keys is None else torch.cat([self.keys, states], dim=2)
            if way == "softmax":
                return torch.softmax(states @ self.keys.mT, dim=-1) @ self.keys
            attend = attention if way == "own" else functional.scaled_dot_product_attention
            return attend(states, self.keys, self.keys)

    with watch(net := Cached()) as seen:
        if transform == "grad":
            torch.func.grad(lambda states: net(states).sum())(STATES)
        else:
            torch.func.vjp(net, STATES)
        net(STATES[:, :, :1])
    assert seen.verify().exact and seen.layers[0].keys == 6
    assert ("within torch.func" in seen.missed) is (way == "own")
