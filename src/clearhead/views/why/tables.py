"""A prediction and its parts as CSV and JSON: every part, and what it adds up to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clearhead.explain.why.parts import Why


def why_rows(why: Why) -> Iterator[list[Any]]:
    """One line for each part: heads by source, feed-forward layers, embedding, biases; the sum."""
    yield [
        "part", "name", "source", "column", "source_word", "weight", "value", "total_effect",
        "probability_without",
    ]  # fmt: skip
    for head in why.heads:
        for source in head.sources:
            yield [
                "edge", head.name, source.text, source.column, source.mark.text,
                source.weight, source.value, "", "",
            ]  # fmt: skip
        if head.replaced is not None:
            yield ["replaced", head.name, "", "", "", "", head.replaced, "", ""]
    for head in why.heads:
        yield ["head", head.name, "", "", "", "", head.value, *_effect(why, head.name)]
    for name, value in why.feed_forwards:
        yield ["feed-forward", name, "", "", "", "", value, *_effect(why, name)]
    for kind, parts in (("embedding", why.embedding), ("bias", why.biases)):
        for name, value in parts:
            yield [kind, name, "", "", "", "", value, "", ""]
    yield ["sum", "", "", "", "", "", why.total, "", ""]
    yield ["model", "", "", "", "", "", why.proof.measured, "", ""]


def _effect(why: Why, name: str) -> list[Any]:
    effect = None if why.effects is None else why.effects.of(name)
    return ["", ""] if effect is None else [effect.total, effect.probability]
