"""The best head of each property, with its counts."""

from __future__ import annotations

from clearhead.explain.course.evidence import evidence
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.roles import find_roles
from tests.shared.role_models import some_sentences


def test_the_best_heads_come_with_their_counts_and_examples() -> None:
    sentences = some_sentences()
    roles = find_roles(
        planted_model(sentences), sentences, properties=["previous token", "dates"], interventions=0
    )
    found = evidence(roles, ("previous token", "dates", "names"))
    assert found["sentences"] == len(sentences)
    assert len(found["resting"]) == found["layers"] * found["heads"]
    (first, *_) = found["roles"]
    best = max(
        (role for role in roles.named if role.property == first["property"]),
        key=lambda role: role.confirmed.accuracy,
    )
    assert (first["head"], first["hits"]) == (best.head, best.confirmed.hits)
    assert first["hits"] <= first["cases"] and first["head"] in first["heads"]
    for example in first["examples"]:
        assert all(0 <= key["weight"] <= 1 for key in example["keys"])
