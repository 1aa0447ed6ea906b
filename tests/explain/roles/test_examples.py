from __future__ import annotations

from tests.shared.role_models import planted_roles


def test_examples_show_where_the_head_looked() -> None:
    for example in planted_roles(True).examples["L0H0", "previous token"]:
        start, end = example.span
        assert example.text[start:end] == example.query
        key = example.keys[0]
        assert example.hit and key.weight > 0.99 and key.target
        assert example.text[slice(*key.span)] == key.text
        between = example.text[key.span[1] : start]
        assert between in ("", " ")
