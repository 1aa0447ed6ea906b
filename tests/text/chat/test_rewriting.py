from __future__ import annotations

import pytest
from jinja2 import TemplateSyntaxError, nodes

from clearhead.text.chat.rewriting import STEP, TURN, Rewriting, node_counts
from clearhead.text.chat.sandbox import Sandbox, compile_template


def rewritten(source: str) -> tuple[nodes.Template, Rewriting]:
    tree = Sandbox().parse(source)
    rewriting = Rewriting(tree)
    rewriting.visit(tree)
    return tree, rewriting


def filters(source: str) -> list[str]:
    return [node.name for node in rewritten(source)[0].find_all(nodes.Filter)]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{% for a in b %}{% endfor %}", ["charged_loop"]),
        ("{{ a ~ b }}", ["charged_text"]),
        ("{{ a == b }}", ["charged_compare"]),
        ("{{ a == 'user' }}{{ a in ['x', 'y'] }}{{ 3 < a }}", []),
        ("{{ a == '" + "x" * 999 + "' }}", ["charged_compare"]),
        ("{{ 'user' in a }}{{ 1 < a < 3 }}", ["charged_compare"] * 2),
        ("{{ {a: 1, 'b': 2} }}", ["checked_key"]),
        (
            "{{ f(*a) }}{{ a|join(*b) }}{{ a is eq(*b) }}",
            ["charged_loop", "join", "charged_loop", "charged_loop"],
        ),
    ],
)
def test_what_runs_as_plain_python_becomes_a_filter(source: str, names: list[str]) -> None:
    assert sorted(filters(source)) == sorted(names)


def test_macros_and_loops_cost_their_bodies() -> None:
    _, rewriting = rewritten(
        "{% macro f(a) %}{{ a }}{% endmacro %}{% call f() %}x{% endcall %}"
        "{% for a in b recursive %}{{ a }}{% endfor %}"
    )
    assert rewriting.costs == {"f": 4 * STEP, None: 5 * STEP}
    assert rewriting.recursion == TURN + 5 * STEP


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% include 'x' %}", "chat templates have no include"),
        ("{% import 'x' as y %}", "no import"),
        ("{% from 'x' import y %}", "no fromimport"),
        ("{% extends 'x' %}", "no extends"),
        ("{% block x %}{% endblock %}", "no block"),
        ("{% autoescape true %}{% endautoescape %}", "chat templates have no"),
        ("{{ a }}" * 9999, "longer or deeper than any chat template"),
        ("x" * 100_001, "longer or deeper"),
        ("{% if a %}" * 30 + "{% endif %}" * 30, "longer or deeper"),
    ],
)
def test_what_is_no_part_of_a_chat_template(source: str, message: str) -> None:
    with pytest.raises(TemplateSyntaxError, match=message):
        compile_template(source)


def test_nodes_are_counted() -> None:
    tree = Sandbox().parse("{{ a + 1 }}")
    assert max(node_counts(tree).values()) == 5
