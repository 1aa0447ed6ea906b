from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateRuntimeError
from markupsafe import Markup

from clearhead.text.chat.budget import Budget
from clearhead.text.chat.methods import ATTRIBUTES, METHODS
from clearhead.text.chat.sandbox import compile_template, render_template

ARGUMENTS: dict[str, list[Any]] = {
    "startswith": ["a"], "endswith": ["b"], "removeprefix": ["a"], "removesuffix": ["b"],
    "find": ["b"],
    "rfind": ["b"], "index": ["b"], "rindex": ["b"], "count": ["b"], "partition": ["b"],
    "rpartition": ["b"], "replace": ["a", "<é>"], "center": [7], "ljust": [7, "-"], "rjust": [7],
    "zfill": [7], "get": ["a"], "split": ["b"], "rsplit": ["b", 1],
}  # fmt: skip
OWNERS: list[Any] = ["ab\tcb", Markup("a<b"), {"a": "b"}, ["a", "b"], ("b",)]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
def test_every_method_gives_what_python_gives(owner: Any) -> None:
    for name in METHODS[type(owner)]:
        arguments = ARGUMENTS.get(name, [])
        source = "{{ owner." + name + "(*arguments)|string }}"
        found = render_template(compile_template(source), {"owner": owner, "arguments": arguments})
        assert found == str(getattr(owner, name)(*arguments)), name


def test_what_has_no_price_cannot_be_reached() -> None:
    for kind in (str, dict, list, tuple):
        for name in {*dir(kind)} - ATTRIBUTES[kind]:
            owner: Any = kind()
            with pytest.raises(Exception, match=r"unsafe|undefined|has no attribute"):
                render_template(compile_template("{{ owner." + name + "() }}"), {"owner": owner})


@pytest.mark.parametrize(
    ("name", "owner", "arguments"),
    [
        ("rfind", "a" * 300_000, ["b" + "a" * 100_000]),
        ("rsplit", "a" * 1_000_000, ["b" + "a" * 1000]),
        ("strip", "b" * 1_000_000, ["a" * 1_000_000 + "b"]),
        ("replace", "a" * 10_000, ["a", "b" * 10_000]),
        ("split", "a " * 5_000_000, []),
        ("splitlines", "é" * 5_000_000, []),
        ("center", "a", [10**9]),
        ("expandtabs", "\t" * 1000, [10**6]),
        ("count", ["a"] * 99_999, [["a"] * 999]),
    ],
)
def test_methods_that_explode(name: str, owner: Any, arguments: list[Any]) -> None:
    with pytest.raises(TemplateRuntimeError, match="far more"):
        METHODS[type(owner)][name](Budget(), owner, *arguments)
