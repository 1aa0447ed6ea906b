"""The torch runner: cached is uncached, a row is what it is alone, crop and reorder."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.generation.torch_runner import TorchRunner
from tests.shared.tiny_models import DECODERS, ENCODER_DECODERS, assert_same, token_ids

SOURCES = [token_ids(9).tolist(), token_ids(5).tolist(), token_ids(13).tolist()]
ROWS = [[4, 9, 16, 25, 36], [49, 64], [81, 8, 27]]


def whole(model: Any, ids: list[int], source: list[int] | None = None) -> Tensor:
    """Logits after each token, without a cache."""
    given = [] if source is None else [torch.tensor([source])]
    with torch.no_grad():
        return model(*given, torch.tensor([ids]))[0]  # type: ignore[no-any-return]


def sources_for(name: str, count: int) -> list[list[int]] | None:
    return SOURCES[:count] if name in ENCODER_DECODERS else None


def source_of(name: str, row: int) -> list[int] | None:
    return SOURCES[row] if name in ENCODER_DECODERS else None


@pytest.mark.parametrize("name", [*DECODERS, *ENCODER_DECODERS])
def test_rows_of_a_batch_are_what_they_are_alone(tiny: Any, name: str) -> None:
    model = tiny(name).ours
    runner = TorchRunner(model, sources_for(name, 3))
    assert runner.length == 0
    rows = [list(row) for row in ROWS]
    logits = runner.extend(rows)
    for new in ([[5], [6], [7]], [[8, 9], [10], [11, 12, 13]]):
        for row in range(3):
            assert_same(logits[row], whole(model, rows[row], source_of(name, row))[-1])
            rows[row] += new[row]
        logits = runner.extend(new)
    assert runner.lengths == [len(row) for row in rows] == [8, 4, 7]
    assert runner.length == 8


@pytest.mark.parametrize("name", ["llama", "gpt2", "mistral", "t5", "bart"])
def test_crop_and_extend_all(tiny: Any, name: str) -> None:
    model = tiny(name).ours
    runner = TorchRunner(model, sources_for(name, 1))
    runner.extend([[1, 2, 3, 4, 5]])
    runner.crop(3)
    got = runner.extend_all([7, 8, 9])
    assert_same(got, whole(model, [1, 2, 3, 7, 8, 9], source_of(name, 0))[3:])
    assert runner.lengths == [6]
    runner.crop(0)  # a source stays
    assert_same(runner.extend([[4, 5]])[0], whole(model, [4, 5], source_of(name, 0))[-1])


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart"])
def test_reorder_makes_more_and_fewer_rows(tiny: Any, name: str) -> None:
    model = tiny(name).ours
    runner = TorchRunner(model, sources_for(name, 3))
    runner.extend([list(row) for row in ROWS])
    runner.reorder([2, 0, 2, 1])
    logits = runner.extend([[5], [6], [7], [8]])
    for place, (row, new) in enumerate([(2, 5), (0, 6), (2, 7), (1, 8)]):
        assert_same(logits[place], whole(model, [*ROWS[row], new], source_of(name, row))[-1])
    runner.reorder([3])
    logits = runner.extend([[9]])
    assert_same(logits[0], whole(model, [*ROWS[1], 8, 9], source_of(name, 1))[-1])


def test_a_model_in_training_stays_so(tiny: Any) -> None:
    model = tiny("llama").ours
    model.train()
    try:
        logits = TorchRunner(model).extend([[1, 2, 3]])
        assert model.training
        assert not logits.requires_grad
    finally:
        model.eval()


def test_context(tiny: Any) -> None:
    assert TorchRunner(tiny("gpt2").ours).context == 101
    assert TorchRunner(tiny("llama").ours).context == 101
    assert TorchRunner(tiny("t5").ours, SOURCES).context is None  # distances have no end


def test_what_is_refused(tiny: Any) -> None:
    with pytest.raises(InputError, match="an encoder-decoder model needs a source for its encoder"):
        TorchRunner(tiny("t5").ours)
    with pytest.raises(InputError, match="a decoder has no encoder"):
        TorchRunner(tiny("llama").ours, SOURCES)
    with pytest.raises(InputError, match="every row of a batch needs at least one token"):
        TorchRunner(tiny("llama").ours).extend([[1], []])
