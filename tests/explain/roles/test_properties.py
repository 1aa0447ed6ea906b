from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.judging import Rules
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.properties import Property, Targets
from clearhead.explain.roles.roles import find_roles
from tests.shared.role_models import some_sentences


def test_a_new_property_is_one_function() -> None:
    def before_the_comma(sentence: TokenisedSentence) -> Targets:
        commas = [place for place, unit in enumerate(sentence.units) if unit.text == ","]
        return {comma: [comma - 1] for comma in commas}

    found = find_roles(
        planted_model(some_sentences()),
        some_sentences(),
        properties=[before_the_comma],
        interventions=0,
        rules=Rules(least_cases=5),
    )
    (report,) = [one for one in found.properties if one.name == "before the comma"]
    assert report.cases == report.occurs > 10
    score = found.best("before the comma")
    assert score is not None and score.head == "L0H0" and score.accuracy == 1.0
    assert score.baseline == 1.0  # the fixed offset −1 gets it for free: no role
    assert "before the comma" not in {role.property for role in found.named}


def test_wrong_properties_are_refused() -> None:
    model = planted_model(some_sentences())
    far = Property("far", lambda _: {0: [999]})
    with pytest.raises(InputError, match="'far' names position 999; the sentence has positions"):
        find_roles(model, some_sentences(), properties=[far])
    with pytest.raises(InputError, match="there is no built-in property 'verbs'"):
        find_roles(model, some_sentences(), properties=["verbs"])
    with pytest.raises(InputError, match="previous token came twice"):
        find_roles(model, some_sentences(), properties=["previous token", "previous token"])
