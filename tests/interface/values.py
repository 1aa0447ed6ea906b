"""Bad values, each by name: one at a time takes the place of a valid argument.

Every value is made anew for each call, as a call might change it. ``PLAIN`` says which ordinary
value an unusual one stands for: where both are accepted, the results must be equal.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.attention import masks
from tests.interface import subjects

Make = Callable[[], Any]


class Whole(enum.IntEnum):
    """A whole number that is no plain int."""

    THREE = 3


class Unprintable:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("this object cannot be shown")


class Endless:
    """An iterable without an end."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 1


def quietly(make: Make) -> Any:
    """What ``make`` makes, without torch's warnings about prototypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def quantised() -> Tensor:
    return torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)


def nested() -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def object_array() -> np.ndarray[Any, Any]:
    made = np.empty(2, dtype=object)
    made[:] = ["a", None]
    return made


def circular() -> list[Any]:
    made: list[Any] = [1]
    made.append(made)
    return made


SINGLE: dict[str, Make] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "3": lambda: 3,
    "-1": lambda: -1,
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "10**100": lambda: 10**100,
    "-10**100": lambda: -(10**100),
    "0.5": lambda: 0.5,
    "2.5": lambda: 2.5,
    "3.0": lambda: 3.0,
    "-0.0": lambda: -0.0,
    "-0.5": lambda: -0.5,
    "1e-40": lambda: 1e-40,
    "1e300": lambda: 1e300,
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "a complex number": lambda: 1j,
    "a Decimal": lambda: Decimal("1.5"),
    "a Fraction": lambda: Fraction(3, 2),
    "a whole enum": lambda: Whole.THREE,
    "a NumPy int": lambda: np.int64(3),
    "a NumPy float": lambda: np.float32(0.5),
    "a NumPy bool": lambda: np.bool_(True),
    "a NumPy NaN": lambda: np.float64("nan"),
    "a NumPy str": lambda: np.str_("xyz"),
    "a NumPy array": lambda: np.ones((2, 3)),
    "a NumPy scalar array": lambda: np.array(3),
    "a NumPy object array": object_array,
    "an empty string": lambda: "",
    "a string": lambda: "xyz",
    "a number as a string": lambda: "3",
    "a string with NUL": lambda: "a\0b",
    "a lone surrogate": lambda: "\ud800",
    "a long string": lambda: "ab " * 5_000,
    "bytes": lambda: b"ab",
    "an empty list": list,
    "a list of numbers": lambda: [1, 2, 3],
    "a list of strings": lambda: ["a", "b"],
    "a list of lists": lambda: [[1, 2], [3]],
    "a list of None": lambda: [None],
    "a list that holds itself": circular,
    "a tuple": lambda: (1, 2),
    "an empty dict": dict,
    "a dict": lambda: {"a": 1},
    "a set": lambda: {1},
    "a range": lambda: range(2),
    "a long range": lambda: range(10**12),
    "a slice": lambda: slice(0, 2),
    "a slice of strings": lambda: slice("a", "b"),
    "an endless iterable": Endless,
    "an object": object,
    "an object that cannot be shown": Unprintable,
    "a class": lambda: int,
    "a function": lambda: lambda *args, **options: None,
    "a module": lambda: warnings,
    "Ellipsis": lambda: ...,
    "a path that does not exist": lambda: subjects.text_file() / "at all",
    "a folder": lambda: subjects.folder(),
    "a text file": lambda: subjects.text_file(),
    "a path with NUL": lambda: Path("a\0b"),
    "a dtype": lambda: torch.float64,
    "an integer dtype": lambda: torch.int64,
    "a device": lambda: torch.device("cpu"),
    "the meta device": lambda: torch.device("meta"),
    "an unknown device": lambda: "xyz:0",
    "a float tensor": lambda: torch.ones(2, 3),
    "an integer tensor": lambda: torch.ones(2, 3, dtype=torch.long),
    "a bool tensor": lambda: torch.ones(2, 3, dtype=torch.bool),
    "a whole scalar tensor": lambda: torch.tensor(3),
    "a float scalar tensor": lambda: torch.tensor(0.5),
    "a learned scalar": lambda: torch.tensor(0.5, requires_grad=True),
    "an empty tensor": lambda: torch.ones(0),
    "a sparse tensor": lambda: torch.eye(3).to_sparse(),
    "a meta tensor": lambda: torch.ones(2, 3, device="meta"),
    "a complex tensor": lambda: torch.ones(2, 3, dtype=torch.complex64),
    "a quantised tensor": quantised,
    "a nested tensor": nested,
    "a torch module": lambda: nn.Linear(3, 5),
    "a mask": lambda: masks.causal(),
    "a config": lambda: subjects.decoder().config,
    "a decoder": lambda: subjects.decoder().model,
    "a loaded decoder": lambda: subjects.decoder(),
    "a loaded encoder": lambda: subjects.encoder(),
    "a tokenizer": lambda: subjects.decoder().tokenizer,
    "a session": lambda: subjects.session(),
    "a cache": lambda: subjects.cache(),
    "a cache of another model": lambda: subjects.another_models_cache(),
    "a trace": lambda: subjects.seen(),
    "a closed trace": lambda: subjects.closed(),
    "a head": lambda: subjects.seen()["L0H0"],
    "a look": lambda: subjects.look(),
}


def other_values(tensor: Tensor) -> Iterator[tuple[str, Make]]:
    """Tensors that differ from a valid one in one respect each."""
    whole = not tensor.is_floating_point()
    yield "the same, not contiguous", lambda: _strided(tensor)
    yield "the same, expanded", lambda: tensor[:1].expand_as(tensor)
    yield "the same as NumPy", tensor.numpy
    yield "the same as a list", tensor.tolist
    yield "the same as a parameter", lambda: nn.Parameter(tensor.clone(), requires_grad=False)
    if not whole:
        yield "the same, learned", lambda: tensor.clone().requires_grad_()
    for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.bool):
        if dtype != tensor.dtype:
            yield f"the same as {dtype}", partial(tensor.to, dtype)
    yield "the same, complex", lambda: tensor.to(torch.complex64)
    yield "the same, sparse", tensor.to_sparse
    yield "the same, meta", lambda: tensor.to("meta")
    yield (
        "the same, quantised",
        lambda: quietly(lambda: torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.qint8)),
    )
    yield "one axis more", lambda: tensor[None]
    yield "one axis less", lambda: tensor[0]
    yield "one more in front", lambda: torch.cat([tensor, tensor[:1]])
    yield "two more in the last axis", lambda: torch.cat([tensor, *[tensor[..., :1]] * 2], -1)
    yield "last axis too short", lambda: tensor[..., :1]
    yield "nothing in front", lambda: tensor[:0]
    yield "nothing in the last axis", lambda: tensor[..., :0]
    yield "axes turned round", lambda: tensor.permute(*range(tensor.ndim)[::-1])
    if tensor.dtype != torch.bool:
        yield "all negative", lambda: -tensor.abs() - 1
        yield "all huge", lambda: torch.full_like(tensor, 2**40 if whole else 3e38)
    if not whole:
        yield "NaN in it", lambda: _with(tensor, float("nan"))
        yield "inf in it", lambda: _with(tensor, float("inf"))


def _strided(tensor: Tensor) -> Tensor:
    wide = torch.stack([tensor, tensor], -1)
    return wide[..., 0]


def _with(tensor: Tensor, number: float) -> Tensor:
    changed = tensor.clone()
    changed.view(-1)[-1] = number
    return changed


PLAIN: dict[str, Make] = {
    "-0.0": lambda: 0.0,
    "3.0": lambda: 3,
    "a whole enum": lambda: 3,
    "a NumPy int": lambda: 3,
    "a NumPy float": lambda: 0.5,
    "a NumPy bool": lambda: True,
    "a NumPy str": lambda: "xyz",
    "a NumPy scalar array": lambda: 3,
    "a Fraction": lambda: 1.5,
    "a Decimal": lambda: 1.5,
    "a whole scalar tensor": lambda: 3,
    "a float scalar tensor": lambda: 0.5,
}
