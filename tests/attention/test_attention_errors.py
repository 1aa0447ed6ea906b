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

pytestmark = pytest.mark.usefixtures("as_in_production")
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
            "offset must be a number, or (batch) numbers; got (3, 2)",
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
    with pytest.raises(InputError, match=r"for each query head, \(6,\); got list"):
        function(*fitting(), sinks=[0.0] * 6)
    with pytest.raises(InputError, match=r"sinks must be floating point; got torch\.int64"):
        function(*fitting(), sinks=ones(6, dtype=torch.int64))


@BOTH
@pytest.mark.parametrize("window", [0, -3])
def test_a_window_that_sees_nothing(function: Function, window: int) -> None:
    with pytest.raises(InputError, match=f"window counts keys.*must be 1 or more; got {window}"):
        function(*fitting(), window=window)


@BOTH
@pytest.mark.parametrize("softcap", [0.0, -1.0, math.nan])
def test_a_softcap_that_caps_nothing(function: Function, softcap: float) -> None:
    with pytest.raises(InputError, match=f"softcap must be above 0 .*; got {softcap}"):
        function(*fitting(), softcap=softcap)


@BOTH
@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_a_scale_that_is_no_number(function: Function, scale: float) -> None:
    with pytest.raises(InputError, match=f"scale must be a finite number .*; got {scale}"):
        function(*fitting(), scale=scale)


PATHS: dict[str, dict[str, Any]] = {
    "plain call": {},
    "causal": {"causal": True},
    "window": {"window": 3},
    "mask": {"mask": ones(7, 7).tril().bool()},
    "bias": {"bias": torch.zeros(7, 7)},
    "softcap": {"softcap": 2.0},
    "sinks": {"sinks": torch.zeros(6)},
    "causal sinks": {"sinks": torch.zeros(6), "causal": True},
}


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("options", list(PATHS.values()), ids=list(PATHS))
@pytest.mark.parametrize(("position", "name"), [(0, "query"), (1, "key"), (2, "value")])
@pytest.mark.parametrize("function", [ch.attention, ch.attention_steps])
def test_nan_in_a_tensor(
    function: Callable[..., object],
    position: int,
    name: str,
    options: dict[str, Any],
    learning: bool,
) -> None:
    parts = list(fitting(queries=7))
    parts[position][1, 2, 4, 3] = math.nan
    shape = re.escape(str(tuple(parts[position].shape)))
    parts = [part.requires_grad_(learning) for part in parts]
    with pytest.raises(
        InputError, match=rf"{name} holds NaN \(first at \(1, 2, 4, 3\) of {shape}\)"
    ):
        function(*parts, **options)


@pytest.mark.parametrize("function", [ch.attention, ch.attention_steps])
@pytest.mark.parametrize("position", range(3))
def test_nan_in_a_single_head_without_axes(function: Callable[..., object], position: int) -> None:
    parts = [torch.randn(3, 5), torch.randn(4, 5), torch.randn(4, 5)]
    function(*parts)
    parts[position][1, 2] = math.nan
    with pytest.raises(InputError, match=f"{('query', 'key', 'value')[position]} holds NaN"):
        function(*parts)


@pytest.mark.parametrize("position", [1, 2])
def test_nan_in_a_masked_key_or_value(position: int) -> None:
    parts = list(fitting())
    parts[position][0, 0, 6, 0] = math.nan
    for mask in (masks.lengths(6), ones(5, 7).bool() & (torch.arange(7) != 6)):
        with pytest.raises(InputError, match=r"(?s)holds NaN \(first at .*a diverged training run"):
            ch.attention(*parts, mask=mask)


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("keys", [11, 300])
def test_nan_in_a_decoding_step(position: int, keys: int) -> None:
    parts = list(fitting(queries=1, keys=keys))
    parts[position][0, 0, 0, 5] = math.nan
    with pytest.raises(InputError, match=f"{('query', 'key', 'value')[position]} holds NaN"):
        ch.attention(*parts, causal=True)


@pytest.mark.parametrize("softcap", [None, 2.0])
def test_nan_in_bias_and_sinks(softcap: float | None) -> None:
    bias = torch.zeros(5, 7)
    bias[3, 2] = math.nan
    with pytest.raises(InputError, match=r"bias holds NaN \(first at \(0, 0, 3, 2\)"):
        ch.attention(*fitting(), bias=bias, softcap=softcap)
    sinks = torch.tensor([0.0, 0.0, math.nan, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"sinks holds NaN \(first at \(2,\) of \(6,\)\)"):
        ch.attention(*fitting(), sinks=sinks, softcap=softcap)


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize(("position", "name"), [(0, "query"), (1, "key")])
def test_infinity_that_makes_nan(position: int, name: str, learning: bool) -> None:
    parts = list(fitting())
    parts[position][1, 2, 4, 3] = math.inf
    parts = [part.requires_grad_(learning) for part in parts]
    with pytest.raises(InputError, match=f"the result is NaN: {name} holds ±inf"):
        ch.attention(*parts)


def test_infinity_in_the_bias() -> None:
    bias = torch.zeros(5, 7)
    bias[3, 2] = math.inf
    with pytest.raises(InputError, match="the result is NaN: bias holds ±inf"):
        ch.attention(*fitting(), bias=bias)


def test_scores_that_overflow() -> None:
    query, key, value = fitting()
    with pytest.raises(InputError, match="the result is NaN: the scores overflow"):
        ch.attention(query * 1e30, key * 1e30, value)


def test_numbers_that_are_large_but_fine() -> None:
    query, key, value = fitting()
    value = value * torch.tensor([3e37, -3e37]).repeat(11)[:11]
    assert ch.attention(query, key, value).sum().isinf()  # a sum may overflow, its numbers do not
    assert ch.attention(query, key, value).isfinite().all()
    assert ch.attention(query * 1e9, key * 1e9, value).isfinite().all()
