"""The engine: tables of positions, packed weights, threads, and how it prints."""

from __future__ import annotations

import pytest
import torch

from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.runner import EngineRunner, engine_of
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def test_rotary_table() -> None:
    engine = Engine(decoder())
    table = engine.rotary_table(0, 7)
    assert table is not None
    angles = torch.arange(7)[:, None] * 10000.0 ** (-torch.arange(5) / 5)
    torch.testing.assert_close(table, torch.cat([angles.cos(), angles.sin()], dim=-1))
    assert engine.rotary_table(1, 5) is table  # shared by layers, and long enough
    longer = engine.rotary_table(0, 11)
    assert longer is not None and torch.equal(longer[:7], table)
    assert engine.position_table(7) is None


def test_position_table() -> None:
    model = decoder(positions="learned", position_offset=2)
    engine = Engine(model)
    assert engine.rotary_table(0, 7) is None
    table = engine.position_table(7)
    assert table is not None and table.shape == (401, 64)
    wanted = model.stack.embedding.positions(torch.arange(2, 403))  # type: ignore[misc]
    assert torch.equal(table[:, :44], wanted)
    assert not table[:, 44:].any()


@pytest.mark.parametrize("tied", [True, False])
def test_weight_bytes_count_what_a_step_reads(tied: bool) -> None:
    engine = Engine(decoder(tied=tied))
    sizes = [(6 * 32 + 2 * 32 + 2 * 64, 64), (64, 7 * 32), (2 * 96, 64), (64, 96)]
    layer = sum(rows * columns * 34 // 32 for rows, columns in sizes)
    head = 64 * 64 * 34 // 32  # an embedding that is only looked up does not count
    assert engine.weight_bytes == 2 * layer + head
    assert pack_matrix(torch.randn(53, 44)).bytes == head


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Engine(decoder(), threads=3).threads == 3
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    assert Engine(decoder()).threads == 5


def test_one_engine_for_a_model() -> None:
    model = decoder()
    assert engine_of(model) is engine_of(model)
    assert engine_of(decoder()) is not engine_of(model)


def test_repr() -> None:
    runner = EngineRunner(Engine(decoder()))
    size = f"{runner.engine.weight_bytes:,}"
    family = runner.engine.config.family
    assert repr(runner.engine) == f"Engine({family} decoder, {size} bytes of weights)"
    runner.extend([[1, 2], [3]])
    assert repr(runner) == f"EngineRunner({runner.engine!r}, lengths=[2, 1])"
