"""The kinds of tensor data a GGUF file may hold: number, block length and bytes per block."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class TensorKind:
    """``block_bytes`` bytes hold ``block_length`` neighbouring numbers of one row."""

    name: str
    block_length: int
    block_bytes: int


KINDS = {
    0: TensorKind("F32", 1, 4),
    1: TensorKind("F16", 1, 2),
    2: TensorKind("Q4_0", 32, 18),
    3: TensorKind("Q4_1", 32, 20),
    6: TensorKind("Q5_0", 32, 22),
    7: TensorKind("Q5_1", 32, 24),
    8: TensorKind("Q8_0", 32, 34),
    10: TensorKind("Q2_K", 256, 84),
    11: TensorKind("Q3_K", 256, 110),
    12: TensorKind("Q4_K", 256, 144),
    13: TensorKind("Q5_K", 256, 176),
    14: TensorKind("Q6_K", 256, 210),
    20: TensorKind("IQ4_NL", 32, 18),
    23: TensorKind("IQ4_XS", 256, 136),
    24: TensorKind("I8", 1, 1),
    25: TensorKind("I16", 1, 2),
    26: TensorKind("I32", 1, 4),
    27: TensorKind("I64", 1, 8),
    28: TensorKind("F64", 1, 8),
    30: TensorKind("BF16", 1, 2),
}
"""By the number in the file. A kind of whole blocks also wants a function in ``dequantise``; one
number per block (F32, I8 …) wants its dtype in ``file``. Tests compare this table with that of the
``gguf`` package and with the list in docs/models.md."""


def kind_named(name: str) -> TensorKind:
    """A kind by its name."""
    return next(kind for kind in KINDS.values() if kind.name == name)


CODES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)  # of IQ4_NL
RUN = 16  # numbers that compiled functions unpack together


class Stored(NamedTuple):
    """How they see a row of one kind: numbers and bytes of a block."""

    length: int
    bytes: int


@functools.cache
def stored(name: str) -> Stored:
    """The blocks that they count: the file's own, or 16 numbers where those are single ones."""
    kind = kind_named(name)
    times = RUN if kind.block_length == 1 else 1
    return Stored(kind.block_length * times, kind.block_bytes * times)
