from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.roles import find_roles
from tests.shared.role_models import some_sentences


def test_a_corpus_without_sentences_is_refused() -> None:
    few = "holds no sentence that could be counted: of 1 that came, 1 are too short and 0 too long"
    with pytest.raises(InputError, match=few):
        find_roles(planted_model(some_sentences()), ["", "One"])


def test_a_property_without_a_case_never_occurs() -> None:
    found = find_roles(
        planted_model(some_sentences()),
        some_sentences(),
        properties=["numbers", "entities"],
        interventions=0,
    )
    verdicts = {report.name: report.verdict for report in found.properties}
    assert verdicts["entities"] == "never occurs"
