"""Every ``Attention`` case of the onnx package, through the public functions.

ONNX's operator and ours agree on the order of steps and on what True means in a mask. They differ
in where queries stand: ONNX counts from the first key unless there is a past (query i stands at
i + offset), ours from the last; so its causal and its windows are said with a mask and an offset.
"""

from __future__ import annotations

import functools
import importlib
import math
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks

MODES = ("scaled", "capped", "biased", "weights")  # qk_matmul_output_mode 0 … 3


@functools.cache
def cases() -> dict[str, Any]:
    from onnx.backend.test.case import node

    def attention_alone(package: ModuleType) -> None:
        importlib.import_module(f"{package.__name__}.attention")

    # The cases of all other operators take many seconds, most of them for pooling.
    with mock.patch.object(node, "import_recursive", attention_alone):
        every = node.collect_testcases("Attention")
    return {
        case.name: case
        for case in every
        if case.model is not None and case.model.graph.node[0].op_type == "Attention"
    }


def tensor(array: Any) -> Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array.copy())


def split(states: Tensor, heads: int | None) -> Tensor:
    """(batch, query, head · width) → (batch, head, query, width); four axes stay as they are."""
    if states.ndim == 4:
        return states
    assert heads is not None
    return states.view(*states.shape[:2], heads, -1).transpose(1, 2)


def attributes_of(node: Any) -> dict[str, Any]:
    from onnx.helper import get_attribute_value

    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def as_our_call(
    attributes: dict[str, Any], given: dict[str, Tensor]
) -> tuple[tuple[Tensor, Tensor, Tensor], dict[str, Any]]:
    """ONNX's inputs and attributes as the arguments of ``ch.attention``."""
    query = split(given["Q"], attributes.get("q_num_heads"))
    key = split(given["K"], attributes.get("kv_num_heads"))
    value = split(given["V"], attributes.get("kv_num_heads"))
    past = 0
    if "past_key" in given:
        cache = ch.KVCache()
        cache.append(given["past_key"], given["past_value"])
        past = cache.length
        key, value = cache.append(key, value)
    real = given.get("nonpad_kv_seqlen")
    offset = past if real is None else real - query.shape[2]

    rules = []
    if real is not None:
        rules.append(masks.lengths(real))
    if attributes.get("is_causal"):
        rules.append(masks.causal(offset))
    left, right = attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)
    if left >= 0 or right >= 0:
        far = query.shape[2] + key.shape[2]
        rules.append(masks.window(far if left < 0 else left, far if right < 0 else right, offset))

    options: dict[str, Any] = {"scale": attributes.get("scale")}
    options["softcap"] = attributes.get("softcap") or None
    mask = given.get("attn_mask")
    if mask is not None:
        if mask.shape[-1] not in (1, key.shape[2]):  # shorter: the rest is hidden anyway
            hidden = False if mask.dtype == torch.bool else -math.inf
            mask = torch.nn.functional.pad(mask, (0, key.shape[2] - mask.shape[-1]), value=hidden)
        if mask.dtype == torch.bool:
            rules.append(masks.dense(mask if mask.ndim > 1 else mask[None]))
        else:
            options["bias"] = mask
    if rules:
        options["mask"] = functools.reduce(lambda a, b: a & b, rules)
    return (query, key, value), options


def test_there_are_93_of_them() -> None:
    assert len(cases()) >= 93


def close(found: Tensor, wanted: Tensor, case: Any) -> None:
    """The case's own tolerance, loosened at most to 1e-5 in float32 and 2e-2 in half precision."""
    half = wanted.dtype in (torch.float16, torch.bfloat16)
    atol = max(case.atol, 2e-2 if half else 1e-5)
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted, atol=atol, rtol=case.rtol)


def check(case: Any) -> None:
    node = case.model.graph.node[0]
    attributes = attributes_of(node)
    inputs, outputs = case.data_sets[0]
    given = dict(zip([name for name in node.input if name], map(tensor, inputs), strict=True))
    wanted = dict(zip([name for name in node.output if name], map(tensor, outputs), strict=True))

    (query, key, value), options = as_our_call(attributes, given)
    output = ch.attention(query, key, value, **options)
    if wanted["Y"].ndim == 3:
        output = output.transpose(1, 2).flatten(2)
    close(output, wanted["Y"], case)
    if "present_key" in wanted:
        assert key.equal(wanted["present_key"])
        assert value.equal(wanted["present_value"])
    if "qk_matmul_output" in wanted:
        mode = attributes.get("qk_matmul_output_mode", 0)
        close(column(query, key, value, options, mode), wanted["qk_matmul_output"], case)


def column(query: Tensor, key: Tensor, value: Tensor, options: dict[str, Any], mode: int) -> Tensor:
    """What ONNX shows of the way to the weights."""
    steps = ch.attention_steps(query, key, value, **options)
    if mode == 2:  # with mask and bias together
        return steps.masked
    found = getattr(steps, MODES[mode])
    return steps.scaled if found is None else found


@pytest.mark.parametrize("name", list(cases()))
def test_case(name: str) -> None:
    check(cases()[name])
