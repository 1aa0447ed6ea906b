from __future__ import annotations

import csv
import io
import json

from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.planted import PLANTED, planted_model
from clearhead.explain.roles.properties import Property
from clearhead.views.roles.shown import roles
from clearhead.views.roles.text import (
    percent,
)
from tests.shared.planted_roles import shown


def test_every_format_has_the_same_roles() -> None:
    told = json.loads(str(shown().json()))
    by_json = {head["head"]: role["property"] for head in told["heads"] for role in head["roles"]}
    rows = list(csv.DictReader(io.StringIO(str(shown().csv()))))
    by_csv = {row["head"]: row["property"] for row in rows if row["kind"]}
    assert by_json == by_csv
    assert set(by_json.items()) <= set(PLANTED.items()) and len(by_json) >= 4
    assert {row["head"] for row in rows} == {f"L{n}H{m}" for n in range(2) for m in range(6)}
    text, page, picture = str(shown()), str(shown().html()), str(shown().svg())
    for role in shown().named:
        right = percent(role.confirmed.accuracy)
        for place in (text, page, picture):
            assert role.head in place and role.property in place and right in place


def test_formulas_stay_text_in_spreadsheets() -> None:
    sentences = list(made_sentences(67))
    previous = Property(
        "=1+1", lambda s: {q: (q - 1,) for q in range(1, len(s.tokens))}, "tokens", "position"
    )
    found = roles(planted_model(sentences), sentences, properties=[previous], interventions=0)
    assert "L0H0,'=1+1,position," in str(found.csv())
