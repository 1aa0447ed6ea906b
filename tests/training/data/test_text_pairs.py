"""Pairs from files, and pairs held out."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.training.data.text_pairs import held_out_pairs, read_pairs


def test_pairs(tmp_path: Path) -> None:
    table, one, two = tmp_path / "t.tsv", tmp_path / "one", tmp_path / "two"
    table.write_text("a\tb\n\nc\td\n")
    one.write_text("a\nc\n")
    two.write_text("b\nd\n")
    assert read_pairs([table]) == read_pairs([one, two]) == [("a", "b"), ("c", "d")]
    two.write_text("b\n")
    with pytest.raises(InputError, match=r"has 2 lines and .* 1"):
        read_pairs([one, two])
    table.write_text("a b\n")
    with pytest.raises(InputError, match="line 1: a source, a tab and a target"):
        read_pairs([table])
    with pytest.raises(InputError, match="got 3"):
        read_pairs([one, one, one])
    table.write_text("\n")
    with pytest.raises(InputError, match="hold no pairs"):
        read_pairs([table])


def test_a_source_is_learned_or_tried_but_not_both() -> None:
    pairs = [(f"s{n % 10}", f"t{n}") for n in range(50)]
    training, validation = held_out_pairs(pairs, 0.2, seed=3)
    assert {s for s, _ in training} & {s for s, _ in validation} == set()
    assert len(validation) == 10
    with pytest.raises(InputError, match="at least two different sources"):
        held_out_pairs([("a", "b")], 0.1, seed=3)
