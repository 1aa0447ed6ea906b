"""Estimates of large runs, against numbers computed by hand."""

from __future__ import annotations

import math

import pytest

from clearhead.errors import InputError
from clearhead.models.config import ModelConfig
from clearhead.training.scale import (
    Machine,
    operations_per_token,
    parameters_of,
    physical_memory,
    training_cost,
)

CONFIG = ModelConfig(
    kind="decoder", vocab=11, context=7, model=4, layers=2, heads=2, feed_forward=3, gated=True,
)  # fmt: skip
MACHINE = Machine("a toy", operations=1000.0, memory=1e6, network=100.0, utilisation=0.5)


def test_by_hand() -> None:
    count = 11 * 4 + 2 * (4 * 16 + 3 * 12 + 2 * 4) + 4
    assert parameters_of(CONFIG) == count
    assert operations_per_token(CONFIG) == 6 * count + 12 * 2 * 4 * 7
    one = training_cost(CONFIG, tokens=200, batch_tokens=10, machine=MACHINE, machines=1)
    assert one.sent == 0
    assert one.step == pytest.approx(operations_per_token(CONFIG) * 10 / 500)
    assert one.days == pytest.approx(one.step * 20 / 86_400)
    assert one.memory == 16 * count + 68 * 2 * 4 * 10


def test_many_machines() -> None:
    options = {"tokens": 400, "batch_tokens": 40, "machine": MACHINE, "machines": 4}
    plain = training_cost(CONFIG, **options)  # type: ignore[arg-type]
    sharded = training_cost(CONFIG, **options, sharded=True)  # type: ignore[arg-type]
    assert plain.sent == pytest.approx(2 * 0.75 * 4 * parameters_of(CONFIG))
    assert sharded.sent == pytest.approx(1.5 * plain.sent)
    assert sharded.memory < plain.memory
    tight = Machine("small", 1000.0, plain.memory - 1, 100.0)
    assert not training_cost(CONFIG, **(options | {"machine": tight})).fits  # type: ignore[arg-type]


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least one machine"):
        training_cost(CONFIG, tokens=10, batch_tokens=10, machine=MACHINE, machines=0)


def test_the_memory_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert physical_memory() > 2**28
    monkeypatch.delattr("os.sysconf")
    assert physical_memory() == math.inf
