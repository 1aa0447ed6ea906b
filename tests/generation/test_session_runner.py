"""The runner of a session knows its tokens, and whether its cache is valid."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.generation.runner import Runner
from clearhead.generation.session_runner import SessionRunner
from clearhead.generation.torch_runner import TorchRunner
from tests.shared.tiny_models import assert_same


def test_ids_follow_every_operation(tiny: Any) -> None:
    model = tiny("llama").loaded.model
    runner, plain = SessionRunner(TorchRunner(model)), TorchRunner(model)
    assert isinstance(runner, Runner)
    assert (runner.vocab, runner.context) == (plain.vocab, plain.context)
    rows = [[5, 6, 7], [8]]
    assert_same(runner.extend(rows), plain.extend(rows))
    assert runner.rows == rows and runner.lengths == [3, 1] and runner.length == 3
    runner.reorder([1, 0, 0])
    assert runner.rows == [[8], [5, 6, 7], [5, 6, 7]]
    runner.extend([[1], [2], [3]])
    runner.crop(2)
    assert runner.rows == [[8, 1], [5, 6], [5, 6]]
    assert runner.lengths == [2, 2, 2]


def test_extend_all(tiny: Any) -> None:
    model = tiny("llama").loaded.model
    runner = SessionRunner(TorchRunner(model))
    assert_same(runner.extend_all([5, 6, 7]), TorchRunner(model).extend_all([5, 6, 7]))
    assert runner.rows == [[5, 6, 7]]


def test_a_replaced_runner_refuses_and_the_new_one_continues(tiny: Any) -> None:
    old = SessionRunner(TorchRunner(tiny("llama").loaded.model))
    old.extend([[5, 6]])
    new = old.replace()
    new.extend([[7]])
    assert new.rows == [[5, 6, 7]] and new.length == 3
    with pytest.raises(InputError, match="this stream has ended"):
        old.extend([[8]])


def test_an_interrupted_step_breaks_the_cache(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = SessionRunner(TorchRunner(tiny("llama").loaded.model))
    runner.extend([[5]])
    assert not runner.broken

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.runner, "extend", interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.extend([[6]])
    assert runner.broken
    assert runner.rows == [[5]]
