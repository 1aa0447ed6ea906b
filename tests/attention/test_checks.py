"""Bad input: the error names the argument, what was wanted, what came and the likely reason."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks
from clearhead.errors import InputError, ShapeError

pytestmark = pytest.mark.usefixtures("unchecked")
BOTH = pytest.mark.parametrize(
    "function", [ch.attention, ch.attention_steps], ids=["attention", "attention_steps"]
)
Function = Callable[..., Any]


def ones(*shape: int, **options: Any) -> Tensor:
    return torch.ones(*shape, **options)


def fitting(queries: int = 5, keys: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    return ones(2, 6, queries, 8), ones(2, 3, keys, 8), ones(2, 3, keys, 11)


@BOTH
@pytest.mark.parametrize(
    ("query", "key", "value", "says"),
    [
        ((5,), (7,), (7,), "same number of axes, (…, head, query, key_dim)"),
        ((2, 6, 5, 8), (3, 7, 8), (2, 3, 7, 11), "got query (2, 6, 5, 8), key (3, 7, 8), value"),
        ((2, 6, 5, 8), (2, 3, 7, 9), (2, 3, 7, 11), "same width (key_dim); got 8 and 9 in query"),
        ((2, 6, 5, 0), (2, 3, 7, 0), (2, 3, 7, 11), "key_dim is 0, there is nothing to compare"),
        ((2, 6, 5, 8), (2, 3, 7, 8), (2, 3, 13, 8), "every key needs one value; got 7 keys and 13"),
        ((2, 6, 5, 8), (2, 3, 7, 8), (2, 2, 7, 8), "same number of heads; got 3 and 2 in query"),
        ((2, 5, 6, 8), (2, 3, 7, 8), (2, 3, 7, 8), "5 query heads cannot be shared out evenly"),
        ((2, 6, 5, 8), (2, 0, 7, 8), (2, 0, 7, 8), "evenly over 0 key/value heads"),
        ((2, 6, 5, 8), (3, 3, 7, 8), (3, 3, 7, 8), "axes before head (batch …) must be equal or 1"),
        ((5, 8), (7, 9), (7, 9), "same width (key_dim); got 8 and 9 in query (5, 8), key (7, 9)"),
    ],
)
def test_shapes_that_do_not_fit(
    function: Function, query: Any, key: Any, value: Any, says: str
) -> None:
    with pytest.raises(ShapeError, match=re.escape(says)):
        function(ones(*query), ones(*key), ones(*value))


@BOTH
def test_swapped_axes_are_named_as_the_likely_reason(function: Function) -> None:
    with pytest.raises(ShapeError, match="are the head and query axes swapped"):
        function(ones(2, 5, 6, 8), ones(2, 7, 3, 8), ones(2, 7, 3, 8))


@BOTH
@pytest.mark.parametrize("position", range(3))
def test_lists_are_not_tensors(function: Function, position: int) -> None:
    parts: list[Any] = list(fitting())
    parts[position] = [[1.0]]
    came = ", ".join("list" if i == position else "Tensor" for i in range(3))
    with pytest.raises(InputError, match=f"must be torch tensors; got {came}"):
        function(*parts)


@BOTH
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_numbers_that_are_not_floating_point(function: Function, dtype: torch.dtype) -> None:
    parts = (part.to(dtype) for part in fitting())
    with pytest.raises(InputError, match=f"one floating-point dtype; got {dtype}, {dtype}"):
        function(*parts)


@BOTH
def test_precisions_that_differ(function: Function) -> None:
    query, key, value = fitting()
    came = "got torch.float32, torch.bfloat16, torch.float32"
    with pytest.raises(InputError, match=rf"{came}.\nHint: convert with .to\(query.dtype\)"):
        function(query, key.bfloat16(), value)


@BOTH
def test_devices_that_differ(function: Function) -> None:
    query, key, value = fitting()
    with pytest.raises(InputError, match="must be on one device; got cpu, meta, cpu"):
        function(query, key.to("meta"), value)


@BOTH
@pytest.mark.parametrize(
    "shape", [(5, 8), (7, 5), (2, 7), (3, 5, 7), (4, 1, 5, 7), (1, 2, 6, 5, 7)]
)
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_map_of_the_wrong_shape(function: Function, name: str, shape: tuple[int, ...]) -> None:
    given = ones(*shape, dtype=torch.bool if name == "mask" else torch.float32)
    wanted = f"{name} must be broadcastable to (…, head, query, key) = (2, 6, 5, 7); got {shape}."
    with pytest.raises(ShapeError, match=re.escape(wanted)) as caught:
        function(*fitting(), **{name: given})
    assert caught.value.hint == f"a (batch, key) padding {name} needs {name}[:, None, None, :]."


@BOTH
@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (lambda: masks.causal() & ones(5, 11, dtype=torch.bool), "wanted (…, 5 queries, 7 keys)"),
        (
            lambda: masks.lengths(torch.tensor([3, 4, 5])),
            "mask must be broadcastable to (…, head, query",
        ),
        (
            lambda: masks.causal(torch.zeros(3, 2, dtype=torch.long)),
            "offset must be one number for each row, (batch,); got (3, 2)",
        ),
        (lambda: masks.dense(ones(4, 5, 7, dtype=torch.bool)), "mask must be broadcastable to"),
        (
            lambda: masks.documents(torch.tensor([0, 0, 1])),
            "documents: wanted an id for each of 7 keys",
        ),
    ],
)
def test_a_rule_of_the_wrong_shape(
    function: Function, mask: Callable[[], masks.Mask], says: str
) -> None:
    with pytest.raises(ShapeError, match=re.escape(says)):
        function(*fitting(), mask=mask())


@BOTH
def test_a_mask_of_the_wrong_kind(function: Function) -> None:
    for dtype in (torch.float32, torch.int64, torch.uint8):
        wanted = rf"mask must be boolean \(True = may attend\); got {dtype}.\nHint: numbers to add"
        with pytest.raises(InputError, match=wanted):
            function(*fitting(), mask=ones(5, 7, dtype=dtype))
    with pytest.raises(InputError, match="mask must be a torch tensor; got list"):
        function(*fitting(), mask=[[True] * 7] * 5)


@BOTH
def test_a_bias_of_the_wrong_kind(function: Function) -> None:
    wanted = (
        r"bias is added to the scores and must be floating point; got torch.bool.\nHint: .*mask="
    )
    with pytest.raises(InputError, match=wanted):
        function(*fitting(), bias=ones(5, 7, dtype=torch.bool))
    with pytest.raises(InputError, match="bias must be a torch tensor; got float"):
        function(*fitting(), bias=1.0)


@BOTH
@pytest.mark.parametrize("came", [ones(3), ones(1, 6), torch.tensor(0.0)], ids=str)
def test_sinks_of_the_wrong_shape(function: Function, came: Tensor) -> None:
    wanted = f"sinks must be one number for each query head, (6,); got {tuple(came.shape)}."
    with pytest.raises(ShapeError, match=re.escape(wanted)):
        function(*fitting(), sinks=came)


@BOTH
def test_sinks_of_the_wrong_kind(function: Function) -> None:
    with pytest.raises(InputError, match="sinks must be a torch tensor; got list"):
        function(*fitting(), sinks=[0.0] * 6)
    with pytest.raises(InputError, match=r"sinks must be floating point; got torch\.int64"):
        function(*fitting(), sinks=ones(6, dtype=torch.int64))


WRONG_WINDOWS: list[Any] = [0, -3, math.nan, 2.5, "3", True, [3], torch.tensor([2.0])]
WRONG_NUMBERS: list[Any] = [math.nan, math.inf, "1", True, 10**400, 1j, [1.0], torch.tensor(1.0)]


@BOTH
@pytest.mark.parametrize("window", WRONG_WINDOWS, ids=repr)
def test_a_window_that_is_no_count_of_keys(function: Function, window: Any) -> None:
    wanted = r"window \(keys, the query's own included\) must be a whole number of 1 or more; got "
    with pytest.raises(InputError, match=wanted):
        function(*fitting(), window=window)


@BOTH
@pytest.mark.parametrize("softcap", [0.0, -1.0, *WRONG_NUMBERS], ids=repr)
def test_a_softcap_that_caps_nothing(function: Function, softcap: Any) -> None:
    wanted = r"softcap \(None: no cap\) must be a finite number above 0; got "
    with pytest.raises(InputError, match=wanted):
        function(*fitting(), softcap=softcap)


@BOTH
@pytest.mark.parametrize("sizes", [(5, 7), (1, 300), (53, 53)], ids=str)
@pytest.mark.parametrize("scale", WRONG_NUMBERS, ids=repr)
def test_a_scale_that_is_no_number(function: Function, scale: Any, sizes: tuple[int, int]) -> None:
    wanted = r"scale \(None: 1/√key_dim\) must be a finite number; got "
    with pytest.raises(InputError, match=wanted):
        function(*fitting(*sizes), scale=scale)
    states = ones(2, 6, 53, 8)
    with pytest.raises(InputError, match=wanted):
        function(states, states, states, scale=scale)


@BOTH
@pytest.mark.parametrize("causal", [1, "no", None, torch.tensor(True)], ids=repr)
def test_causal_is_true_or_false(function: Function, causal: Any) -> None:
    states = ones(2, 6, 53, 8)
    for given in (fitting(), fitting(1, 300), (states, states, states)):
        with pytest.raises(InputError, match="causal must be True or False; got "):
            function(*given, causal=causal)


@BOTH
def test_sparse_tensors_are_refused(function: Function) -> None:
    states = ones(5, 8)
    with pytest.raises(InputError, match=r"must be a dense tensor; got torch\.sparse_coo"):
        function(states.to_sparse(), states, states)
    with pytest.raises(InputError, match=r"bias must be a dense tensor; got torch\.sparse_coo"):
        function(states, states, states, bias=ones(5, 5).to_sparse())


@BOTH
def test_a_window_of_any_size_sees_at_most_everything(function: Function) -> None:
    given = fitting()
    for causal in (False, True):
        whole, huge = (function(*given, causal=causal, window=size) for size in (None, 10**30))
        whole, huge = (getattr(result, "output", result) for result in (whole, huge))
        torch.testing.assert_close(whole, huge)
