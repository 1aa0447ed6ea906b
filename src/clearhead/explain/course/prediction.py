"""Why a token is predicted and not another: for each head its weight, its part and its ablation."""

from __future__ import annotations

from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.explain.why.make_why import make_why

HEADS = 12  # with the largest parts, and as many with the largest effects


def prediction(loaded: Loaded, text: str, token: str, instead: str) -> dict[str, Any]:
    """The heads that add most or matter most, and what all others add."""
    why = make_why(loaded, text, token=token, instead=instead, effects=True)
    assert why.effects is not None
    named = [part.name for part in why.heads[:HEADS]]
    measured = [one.name for one in why.effects.all if why.head(one.name) is not None]
    named += [name for name in measured[:HEADS] if name not in named]
    heads: list[dict[str, Any]] = []
    for name in named:
        part, effect = why.head(name), why.effects.of(name)
        assert part is not None and effect is not None
        heads.append(
            {
                "head": name,
                "part": part.value,
                "source": part.sources[0].mark.text,
                "weight": part.sources[0].weight,
                "from_source": part.sources[0].value,
                "effect": effect.total,
                "probability": effect.probability,
            }
        )
    return {
        "text": text,
        "token": token,
        "instead": instead,
        "total": why.total,
        "probability": why.effects.probability,
        "heads": heads,
        "others": why.total - sum(one["part"] for one in heads),
        "measured": why.proof.measured,
        "error": why.proof.error,
        "rank_correlation": why.effects.rank_correlation([part.name for part in why.heads]),
    }
