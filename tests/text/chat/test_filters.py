from __future__ import annotations

import copy
from typing import Any

import pytest
from jinja2 import TemplateRuntimeError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from clearhead.text.chat.filters import CHARGED_FILTERS, CHARGED_TESTS
from clearhead.text.chat.sandbox import compile_template, render_template
from tests.text.chat.realistic import CALLS, TOOLS
from tests.text.chat.test_weights import doubled

VALUES: dict[str, Any] = {
    "text": "The <b>kids</b>\n ran, é ", "number": 7, "real": -2.5, "nothing": None,
    "list": ["b", "A", "a"],
    "numbers": [3, 1, 2], "held": {"b": 1, "A": 2}, "messages": CALLS, "tools": TOOLS,
}  # fmt: skip
ARGUMENTS = [
    "",
    "'a'",
    "2",
    "'a', 'b'",
    "2, 'x'",
    "attribute='role'",
    "'role', 'equalto', 'user'",
    "'upper'",
]


def render(source: str, **variables: Any) -> str:
    return render_template(compile_template(source), variables)


def theirs(source: str) -> str | None:
    """What Jinja itself makes of it; None for an error."""
    environment = ImmutableSandboxedEnvironment()
    try:
        return environment.from_string(source).render(copy.deepcopy(VALUES))
    except Exception:
        return None


@pytest.mark.parametrize("name", sorted(set(CHARGED_FILTERS) - {"tojson"}))
def test_every_filter_gives_what_jinja_gives(name: str) -> None:
    compared = 0
    for value in VALUES:
        for given in ARGUMENTS:
            for source in (
                f"{{{{ {value}|{name}({given}) }}}}",
                f"{{{{ {value}|{name}({given})|list }}}}",
            ):
                expected = theirs(source)
                if expected is None or " object " in expected or " at 0x" in expected:
                    continue
                assert render(source, **VALUES) == expected, source
                compared += 1
    assert compared


@pytest.mark.parametrize("name", sorted(name for name in CHARGED_TESTS if name.isidentifier()))
def test_every_test_gives_what_jinja_gives(name: str) -> None:
    compared = 0
    for value in VALUES:
        for given in ARGUMENTS[:4]:
            source = f"{{{{ {value} is {name}({given}) }}}}"
            expected = theirs(source)
            if expected is None:
                continue
            if value == "text" and name in ("divisibleby", "even", "odd"):
                continue  # Jinja formats the text
            assert render(source, **VALUES) == expected, source
            compared += 1
    assert compared


@pytest.mark.parametrize(
    "filtered",
    ["string", "tojson", "join", "sort", "unique|list", "list|string", "max", "first ~ ''", "e",
     "upper", "replace('a', 'b')", "groupby(0)", "map('string')|list", "batch(2)|list|string"],
)  # fmt: skip
def test_what_is_endless_on_paper_is_refused(filtered: str) -> None:
    with pytest.raises(TemplateRuntimeError, match="far more"):
        render("{{ [value, value]|" + filtered + " }}", value=doubled(60))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ 'x'|indent(99999) }}", "wider than any"),
        ("{{ 'x'|center(10 ** 9) }}", "far more"),
        ("{{ 5|round(99) }}", "rounds to 99 decimals"),
        ("{{ [[1]]|sum(start=[]) }}", "sum adds numbers"),
        ("{{ [1]|tojson(indent=99) }}", "indents JSON by 99"),
        ("{{ ([1] * 99999)|tojson(indent=16) }}", "far more"),
        ("{{ range(9)|batch(10 ** 9, 'x')|list }}", "wider than any"),
        ("{{ range(9)|slice(10 ** 9)|list }}", "wider than any"),
        ("{{ ('f' * 999)|int(base=16) }}", "a number beyond any use"),
        ("{{ range(9999)|map(attribute='a.' * 99, default='x')|list }}", "far more"),
    ],
)
def test_filters_that_explode(source: str, message: str) -> None:
    with pytest.raises(TemplateRuntimeError, match=message):
        render(source)


def test_numbers_only() -> None:
    with pytest.raises(TypeError, match="a number is wanted"):
        render("{{ '%99999999d' is odd }}")


def test_a_lazy_result_stays_true_and_is_gone_through_once() -> None:
    source = "{% set found = []|select %}{{ 'yes' if found }}{{ found|list }}{{ found|list }}"
    assert render(source) == "yes[][]"
