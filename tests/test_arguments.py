"""Checks of single arguments."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from clearhead.arguments import (
    flag,
    one_of,
    path,
    real_number,
    several,
    shown,
    text,
    whole_number,
)
from clearhead.errors import ConfigError, InputError


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), torch.tensor(3)])
def test_whole_numbers(value: object) -> None:
    assert whole_number("window", value, least=1) == 3


@pytest.mark.parametrize(
    "value", [True, 3.0, "3", None, 0, math.nan, torch.tensor(3.0), torch.tensor([1, 2]), [3], 1j]
)
def test_what_is_no_whole_number_of_1_or_more(value: object) -> None:
    with pytest.raises(InputError, match="window must be a whole number of 1 or more; got "):
        whole_number("window", value, least=1)


def test_bounds_are_named() -> None:
    with pytest.raises(InputError, match="a whole number from 1 to 7; got 8"):
        whole_number("window", 8, least=1, most=7)
    with pytest.raises(InputError, match="a whole number of at most 7; got 8"):
        whole_number("window", 8, most=7)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), Fraction(2), Decimal(2)])
def test_real_numbers(value: object) -> None:
    assert real_number("scale", value, above=0) == 2.0


@pytest.mark.parametrize(
    "value", [True, "2", b"2", None, 0, -1, math.nan, math.inf, 10**400, 2j, [2.0], np.zeros(2)]
)
def test_what_is_no_number_above_0(value: object) -> None:
    with pytest.raises(InputError, match="scale must be a finite number above 0; got "):
        real_number("scale", value, above=0)


def test_a_tensor_is_no_constant() -> None:
    with pytest.raises(InputError, match="got a tensor"):
        real_number("scale", torch.tensor(2.0))


def test_flags() -> None:
    assert flag("causal", True) is True
    assert flag("causal", np.bool_(False)) is False
    for value in (1, "no", None, torch.tensor(True)):
        with pytest.raises(InputError, match="causal must be True or False; got "):
            flag("causal", value)


def test_a_wrong_value_is_shown_shortly_whatever_it_is() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert shown(Hostile()) == "<Hostile>"
    assert shown("x" * 1000) == "<str>"
    assert shown(torch.zeros(3, 3)) == "<Tensor>"
    assert shown(2.5) == "2.5"


def test_choices_need_no_hash_and_no_equality() -> None:
    one_of("pool", "max", ("max", "sum"))
    for value in (["max"], np.array(["max", "sum"]), 1, None, "mean"):
        with pytest.raises(InputError, match="pool must be one of 'max', 'sum'; got "):
            one_of("pool", value, ("max", "sum"))
    with pytest.raises(ConfigError, match="words must be one of True, False; got 1"):
        one_of("words", 1, (True, False), error=ConfigError)


def test_lists_have_an_end() -> None:
    assert several("heads", (3, 5), "numbers") == [3, 5]
    assert several("heads", np.array([3, 5]), "numbers") == [3, 5]
    for value in ("35", b"35", 3, None, {3: 5}, iter([3]), torch.tensor(3), range(2**40), list):
        with pytest.raises(InputError, match="heads must be a list of numbers; got "):
            several("heads", value, "numbers")


def test_texts_are_whole_characters() -> None:
    assert text("name", "naïve 😀") == "naïve 😀"
    with pytest.raises(InputError, match="name must be a string; got b'x'"):
        text("name", b"x")
    with pytest.raises(InputError, match=r"name holds half a character .* at position 1"):
        text("name", "a\ud800")


def test_paths_are_those_that_a_system_can_have() -> None:
    assert path("folder", "a/b") == path("folder", Path("a/b")) == Path("a/b")
    for value in ("", "a\0b", "a\ud800", "x" * 256, 3, None, b"a", ["a"]):
        with pytest.raises(InputError, match="folder must be a path"):
            path("folder", value)
