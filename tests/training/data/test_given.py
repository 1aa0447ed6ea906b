"""Checks of the arguments of ``train``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.training.data.given import check_train

VALID: dict[str, Any] = {
    "out": "trained", "pairs": False, "resume": False, "shard": False, "size": "tiny",
    "tokenizer": "bpe", "start_from": None, "vocabulary": 300, "model": {"layers": 1},
    "settings": None, "device": "cpu", "texts": ["one"], "validation": None, "steps": 3,
    "minutes": None, "seed": 0, "chats": False, "lora": None, "freeze": (),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("out", 3, "out must be a path"),
        ("out", "", "out must be a path; got ''"),
        ("pairs", 1, "pairs must be True or False; got 1"),
        ("chats", "yes", "chats must be True or False; got 'yes'"),
        ("lora", 0, "lora must be a whole number from 1"),
        ("freeze", [3], "freeze must be words or patterns"),
        ("size", "huge", "size must be one of 'tiny', .*; got 'huge'"),
        ("size", ["tiny"], "size must be one of"),
        ("tokenizer", 5, "tokenizer must be a path"),
        ("start_from", "a\ud800", "start_from must be a path"),
        ("texts", range(2**40), "texts must be a list of texts"),
        ("validation", Path("a\0b"), "validation must be a path"),
        ("steps", 0, "steps must be a whole number of 1 or more"),
        ("minutes", "1", "minutes must be a finite number above 0"),
        ("seed", -0.0, "seed must be a whole number from 0"),
        ("vocabulary", 2.5, "vocabulary must be a whole number"),
        ("model", [("layers", 1)], "model must be a dict of fields by name"),
        ("settings", {3: 1}, "settings must be a dict of fields by name"),
        ("device", None, "device must be a device"),
        ("device", "meta", "nothing can be computed on the meta device"),
    ],
)
def test_wrong_kinds_are_refused_by_name(name: str, given: object, said: str) -> None:
    check_train(VALID)
    with pytest.raises(InputError, match=said):
        check_train(VALID | {name: given})


def test_paths_and_none_are_fine() -> None:
    check_train(VALID | {"out": Path("run"), "tokenizer": Path("words"), "size": None})
