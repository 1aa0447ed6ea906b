"""Checks of the arguments of ``roles``."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.door import check_roles
from clearhead.explain.roles.judging import Rules

VALID: dict[str, Any] = {
    "corpus": ["a text"], "properties": ["induction"], "tokenizer": None, "forward": None,
    "progress": None, "spacy": None, "interventions": 3, "rules": Rules(), "batch_tokens": 64,
    "keep": None, "share": (1, 2),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("corpus", 5, "corpus must be a path, a text"),
        ("properties", 5, "properties must be a list of names"),
        ("tokenizer", 5, r"tokenizer must be one of clearhead\.text"),
        ("forward", 5, "forward must be a function; got 5"),
        ("progress", "x", "progress must be a function"),
        ("spacy", 5, "spacy must be a pipeline"),
        ("interventions", -1, "interventions must be a whole number of 0 or more"),
        ("rules", {}, "rules must be Rules"),
        ("batch_tokens", 0, "batch_tokens must be a whole number of 1 or more"),
        ("keep", 5, "keep must be a path"),
        ("share", 5, r"share must be \(this process, number of processes\)"),
        ("share", (2, 2), "share .* must be a whole number from 0 to 1; got 2"),
    ],
)
def test_wrong_kinds_are_refused_by_name(name: str, given: object, said: str) -> None:
    check_roles(VALID)
    with pytest.raises(InputError, match=said):
        check_roles(VALID | {name: given})
