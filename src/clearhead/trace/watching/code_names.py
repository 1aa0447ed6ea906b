"""What the code of a module may call: found by reading it, not by the name of its class."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

INTERFACE = "ALL_ATTENTION_FUNCTIONS"  # the attention interface of transformers
_DEPTH = 4  # functions that call functions
_SOFTMAX = frozenset(
    (
        *("softmax", "log_softmax", "masked_softmax", "gumbel_softmax", "XSoftmax", "softmin"),
        *("sparsemax", "exp", "exp_", "exp2", "logsumexp"),
    )
)
_FUNCTIONS = frozenset(
    (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
)
_FUSED = frozenset(
    ("scaled_dot_product_attention", "multi_head_attention_forward", "flex_attention", "sdpa")
)
_ALIASES = {
    id(function): name
    for home in (torch, functional, torch.Tensor)
    for name in ("softmax", "log_softmax", "exp", "scaled_dot_product_attention")
    if (function := getattr(home, name, None)) is not None
}


def may_attend(names: frozenset[str]) -> bool:
    """True if code with these names may compute a softmax or call fused attention."""
    return bool(names & _SOFTMAX or names & _FUSED)


def names_in_attributes(module: nn.Module) -> frozenset[str]:
    """The same of functions that a module holds as attributes: which one it calls is an option."""
    names, done = set[str](), set[int]()
    for value in vars(module).values():
        if type(value) not in _FUNCTIONS:
            continue
        function: Any = value.func if isinstance(value, functools.partial) else value
        function = getattr(function, "__func__", function)
        names.add(_ALIASES.get(id(function), ""))
        if isinstance(function, types.FunctionType) and _is_foreign(function):
            names |= _names_of(function, _DEPTH, done)
    return frozenset(names)


@functools.cache
def names_in_code(kind: Any) -> frozenset[str]:
    """Every global name and attribute that ``forward`` uses, the methods that it calls, and the
    functions that they call."""
    methods: dict[str, types.FunctionType] = {}
    for base in kind.__mro__:
        if base is nn.Module:
            break
        for name, member in vars(base).items():
            member = getattr(member, "__func__", member)  # static and class methods
            found = inspect.unwrap(member) if callable(member) else None
            if isinstance(found, types.FunctionType):
                methods.setdefault(name, found)
    names, done = set[str](), set[int]()
    wanted = ["forward"]
    while wanted:
        method = methods.pop(wanted.pop(), None)
        if method is not None:
            found_names = _names_of(method, _DEPTH, done)
            names |= found_names
            wanted += found_names
    return frozenset(names)


def _names_of(function: types.FunctionType, depth: int, done: set[int]) -> set[str]:
    if id(function) in done:
        return set()
    done.add(id(function))
    names: set[str] = set()
    for code in _codes(function.__code__):
        names.update(code.co_names)
    for name in list(names):
        for called in _callables(function.__globals__.get(name)):
            alias = _ALIASES.get(id(called))
            if alias is not None:
                names.add(alias)
            if depth > 0 and isinstance(called, types.FunctionType) and _is_foreign(called):
                names |= _names_of(called, depth - 1, done)
    return names


def _callables(named: Any) -> list[Any]:
    """What a global name stands for: a function, or a table of functions."""
    if type(named) is dict and len(named) < 100:
        return [value for value in named.values() if callable(value)]
    return [named]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_foreign(function: types.FunctionType) -> bool:
    """Not torch's own: those are known by their names."""
    return not (function.__module__ or "").startswith("torch.")
