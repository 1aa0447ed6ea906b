from __future__ import annotations

import warnings

import gguf
import numpy as np
import pytest

from clearhead.checkpoints.gguf.dequantise import NUMBERS_AT_ONCE, dequantise
from clearhead.checkpoints.gguf.kinds import KINDS, TensorKind

BLOCK_KINDS = {number: kind for number, kind in KINDS.items() if kind.block_length > 1}


def unpacked(blocks: np.ndarray, kind: TensorKind) -> np.ndarray:
    result = np.full((len(blocks), kind.block_length), np.nan, dtype=np.float32)
    dequantise(blocks, kind, result)
    return result


def test_q4_1_by_hand() -> None:
    scale, minimum = np.array([0.5, -3.0], dtype=np.float16)
    packed = bytes([0x21]) + bytes(15)  # number 0 is 1, number 16 is 2, all others are 0
    blocks = np.frombuffer(scale.tobytes() + minimum.tobytes() + packed, np.uint8).reshape(1, 20)
    result = unpacked(blocks, KINDS[3])
    assert result[0, 0] == -2.5
    assert result[0, 16] == -2.0
    assert (np.delete(result[0], [0, 16]) == -3.0).all()


def test_q8_0_by_hand() -> None:
    numbers = np.arange(-16, 16, dtype=np.int8)
    blocks = np.frombuffer(np.float16(0.25).tobytes() + numbers.tobytes(), np.uint8)
    assert unpacked(blocks.reshape(1, 34), KINDS[8])[0].tolist() == (numbers / 4).tolist()


@pytest.mark.parametrize("number", BLOCK_KINDS)
def test_any_bytes_give_the_same_bits_as_the_package(number: int) -> None:
    kind = BLOCK_KINDS[number]
    count = NUMBERS_AT_ONCE // kind.block_length + 7  # more than one piece
    blocks = np.random.default_rng(number).integers(
        0, 256, (count, kind.block_bytes), dtype=np.uint8
    )
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType(number))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        came = unpacked(blocks, kind)
    assert np.array_equal(came, wanted, equal_nan=True)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_quantised_by_the_package_and_back(name: str) -> None:
    oracle = gguf.GGMLQuantizationType[name]
    numbers = np.random.default_rng(1).normal(size=(11, 96)).astype(np.float32)
    stored = gguf.quants.quantize(numbers, oracle)
    kind = KINDS[oracle.value]
    came = unpacked(stored.reshape(-1, kind.block_bytes), kind).reshape(numbers.shape)
    assert np.array_equal(came, gguf.quants.dequantize(stored, oracle))
    assert np.abs(came - numbers).max() < 0.4
