"""Roles as CSV and JSON: every head with its roles, every number that was quoted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from clearhead.explain.roles.roles import Roles
from clearhead.explain.roles.scores import Score
from clearhead.views.escape import plain_json

COLUMNS = (
    "head", "property", "kind", "accuracy", "low", "high", "baseline", "best_offset", "at_offset",
    "at_random", "at_random_alike", "cases", "mass", "share", "chance", "rests_left_out",
    "accuracy_where_found", "cases_where_found",
)  # fmt: skip


def role_rows(roles: Roles) -> Iterator[list[Any]]:
    """A heading, one line for each role, and one for each head without any."""
    yield list(COLUMNS)
    for head in roles.heads:
        if not head.roles:
            yield [head.name, "no role found", *[""] * (len(COLUMNS) - 2)]
        for role in head.roles:
            yield [
                role.head, role.property, role.kind, *_score(role.confirmed).values(),
                f"{role.p_value:.3g}", role.left_out, round(role.found.accuracy, 4),
                role.found.cases,
            ]  # fmt: skip


def roles_json(roles: Roles) -> str:
    """Everything that the pictures show, by name."""
    content = {
        "kind": "Roles",
        "model": roles.model,
        "corpus": roles.corpus,
        "totals": roles.tally.totals,
        "rules": vars(roles.rules),
        "tried": roles.judgement.tried,
        "notes": list(roles.notes),
        "properties": [vars(report) for report in roles.properties],
        "heads": [
            {
                "head": head.name,
                "resting": round(head.sink_share, 4),
                "roles": [_role(roles, role) for role in head.roles],
            }
            for head in roles.heads
        ],
        "effects": [_plain(effect) for effect in roles.effects],
    }
    return plain_json(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)) + "\n"


def _role(roles: Roles, role: Any) -> dict[str, Any]:
    examples = roles.examples.get((role.head, role.property), ())
    return {
        "property": role.property,
        "kind": role.kind,
        "confirmed": _score(role.confirmed),
        "found": _score(role.found),
        "chance": role.p_value,
        "rests_left_out": role.left_out,
        "examples": [_plain(example) for example in examples],
    }


def _score(score: Score) -> dict[str, Any]:
    low, high = score.interval
    alike = score.at_random_alike
    return {
        "accuracy": round(score.accuracy, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "baseline": round(score.baseline, 4),
        "best_offset": score.offset,
        "at_offset": round(score.at_offset, 4),
        "at_random": round(score.at_random, 4),
        "at_random_alike": None if alike is None else round(alike, 4),
        "cases": score.cases,
        "mass": round(score.mass, 4),
        "share": round(score.share, 4),
    }


def _plain(data: Any) -> Any:
    """Dataclasses as objects; what JSON cannot write (no error of a single case) as null."""
    if hasattr(data, "__dataclass_fields__"):
        return {name: _plain(getattr(data, name)) for name in data.__dataclass_fields__}
    if isinstance(data, list | tuple):
        return [_plain(one) for one in data]
    if isinstance(data, float):
        return round(data, 6) if abs(data) != float("inf") else None
    return data
