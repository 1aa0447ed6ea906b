"""What heads specialise in: the best head of some properties, with its counts and examples."""

from __future__ import annotations

from typing import Any

from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.roles import Roles

PROPERTIES = (
    "every VERB", "every NOUN", "every PRON", "every SCONJ", "names", "dates", "numbers",
    "induction", "same token", "previous token",
)  # fmt: skip
EXAMPLES = 2


def evidence(roles: Roles, properties: tuple[str, ...] = PROPERTIES) -> dict[str, Any]:
    """The strongest role of each property that was found, and which heads have it as well."""
    found = []
    for name in properties:
        heads = [role for role in roles.named if role.property == name]
        if heads:
            best = max(heads, key=lambda role: role.confirmed.accuracy)
            found.append(_role(roles, best, [role.head for role in heads]))
    totals = roles.tally.totals
    return {
        "corpus": roles.corpus,
        "sentences": int(totals["sentences"]),
        "tokens": int(totals["tokens"]),
        "layers": len(roles.layers),
        "heads": roles.layers[0].heads,
        "resting": [round(head.sink_share, 3) for head in roles.heads],
        "roles": found,
    }


def _role(roles: Roles, role: Role, heads: list[str]) -> dict[str, Any]:
    score = role.confirmed
    examples = [one for one in roles.examples.get((role.head, role.property), ()) if one.hit]
    effects = [
        one for one in roles.effects if (one.head, one.property) == (role.head, role.property)
    ]
    return {
        "property": role.property,
        "head": role.head,
        "heads": heads,
        "hits": score.hits,
        "cases": score.cases,
        "baseline": round(score.baseline, 4),
        "examples": [_example(one) for one in examples[:EXAMPLES]],
        "effect": str(effects[0]) if effects else "",
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "text": example.text,
        "query": list(example.span),
        "keys": [
            {"span": list(key.span), "weight": round(key.weight, 4), "target": key.target}
            for key in example.keys
        ],
    }
