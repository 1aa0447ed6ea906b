from __future__ import annotations

from typing import Any

import jinja2
import pytest

from clearhead.text.chat.sandbox import compile_template, render_template


def render(source: str, **variables: Any) -> str:
    return render_template(compile_template(source), variables)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for m in ms %}{{ m }}{% if loop.last %}.{% endif %}{% endfor %}", "ab."),
        ("{% for m in ms %}{% if m == 'b' %}{% break %}{% endif %}{{ m }}{% endfor %}", "a"),
        ("{{ ms[0] ~ 7 ~ ms[1] }}", "a7b"),
        ("{{ {'k': '<é>'} | tojson }}", '{"k": "<é>"}'),
        ("{% generation %}{{ ms | join('-') }}{% endgeneration %}", "a-b"),
        ("{{ range(3) | list }}", "[0, 1, 2]"),
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
    ],
)
def test_what_templates_use(source: str, text: str) -> None:
    assert render(source, ms=["a", "b"]) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for a in range(99999999) %}x{% endfor %}", "far more"),
        ("{{ 'a' * 99999999 }}", "far more"),
        ("{{ 'a'.ljust(99999999) }}", "far more"),
        ("{{ 'x'.center(9999).replace('x', 'y' * 9999) * 9999 }}", "far more"),
        ("{{ [1] | tojson(indent=99) }}", "indents JSON by 99"),
        ("{{ raise_exception('no roles') }}", "no roles"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ 'a'.translate({}) }}", "unsafe|not callable|undefined"),
    ],
)
def test_what_they_may_not_do(source: str, message: str) -> None:
    with pytest.raises(jinja2.TemplateError, match=message):
        render(source)


def test_every_rendering_has_a_budget_of_its_own() -> None:
    code = compile_template("{% for a in range(99999) %}{% endfor %}" * 2 + ".")
    assert [render_template(code, {}) for _ in range(2)] == [".", "."]


@pytest.mark.parametrize("name", ["attr", "pprint", "random", "urlize", "wordwrap", "xmlattr"])
def test_filters_that_are_not_there(name: str) -> None:
    with pytest.raises(jinja2.TemplateError, match=f"No filter named '{name}'"):
        compile_template("{{ x | " + name + " }}")
