from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.trace.watching.layer_filter import LayerFilter


def test_without_a_choice_everything_is_kept() -> None:
    everything = LayerFilter(None, None)
    assert everything.keeps("L3", "blocks.3") and everything.heads_of("L3", 7) is None
    assert everything.missing(["L0"], []) == []


@pytest.mark.parametrize("layers", [3, "L3", "blocks.3", [1, "L3"], ["blocks.3"]])
def test_layers_by_number_name_or_path(layers: Any) -> None:
    wanted = LayerFilter(layers, None)
    assert wanted.keeps("L3", "blocks.3") and not wanted.keeps("L2", "blocks.2")


def test_a_number_names_all_three_kinds() -> None:
    assert all(LayerFilter(3, None).keeps(name, "") for name in ("L3", "E3", "C3"))


def test_heads_by_number_and_name() -> None:
    wanted = LayerFilter(None, [1, "L3H5"])
    assert wanted.heads_of("L3", 7) == [1, 5] and wanted.heads_of("L0", 7) == [1]
    named = LayerFilter(None, "L3H5")
    assert named.keeps("L3", "") and not named.keeps("L2", "")
    with pytest.raises(InputError, match=r"L3H5: this layer has 4 heads, 0 … 3"):
        named.heads_of("L3", 4)


def test_what_is_missing_is_named() -> None:
    wanted = LayerFilter([0, "L9", "x.y"], None)
    assert wanted.missing(["L0", "L1"], ["x.y"]) == ["L9"]


@pytest.mark.parametrize(
    ("layers", "heads", "words"),
    [
        ([-1], None, "layers count from 0; got -1"),
        ([], None, "layers is empty: nothing would be kept"),
        (True, None, 'layers are numbers or names such as "L16"; got True'),
        (None, "H5", r'heads are numbers or names such as "L16H5"; got'),
    ],
)
def test_bad_choices(layers: Any, heads: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        LayerFilter(layers, heads)
