"""The difference of what the two sides of a page show: two texts, two models, or two heads."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.errors import InputError
from clearhead.explain.difference import Difference, make_difference
from clearhead.studio.looking import Pane, plain_head
from clearhead.studio.worker import Job

LISTED = 12


def send_difference(one: Pane, other: Pane, job: Job, heads: Sequence[str] | None = None) -> None:
    """Send the heads, words and weights that differ most.

    Where both sides show the same text of the same model, the two ``heads`` are compared.
    """
    if one.look is None or other.look is None:
        raise InputError("there are no two looks to compare yet.")
    alike = one.model == other.model and one.look.text == other.look.text
    found = _of_heads(one, other, heads) if alike and heads else _of_looks(one, other)
    job.tell(
        "compared",
        alike=alike,
        heads=[[change.before, change.after, change.distance] for change in found.heads[:LISTED]],
        words=[
            [change.before.text, change.after.text, change.distance, change.head]
            for change in found.words[:LISTED]
        ],
        cells=[
            [change.head, change.row.text, change.column_text, change.before, change.after]
            for change in found.changes[:LISTED]
        ],
        places=[list(pair) for pair in _different(found)],
        gone=list(found.gone),
        new=list(found.new),
        notes=list(found.notes),
    )


def _of_looks(one: Pane, other: Pane) -> Difference:
    return make_difference(one.look, other.look, names=(one.model, other.model))


def _of_heads(one: Pane, other: Pane, heads: Sequence[str]) -> Difference:
    assert one.look is not None and other.look is not None
    names = [plain_head(head) for head in heads]
    pictures = [side.look.head(name) for side, name in zip((one, other), names, strict=True)
                if side.look is not None]  # fmt: skip
    return make_difference(*pictures, names=(heads[0], heads[1]))


def _different(found: Difference) -> list[tuple[int, int]]:
    """The words whose rows differ most, by their first tokens on both sides."""
    words = [one for one in found.words[:LISTED] if one.distance > 0]
    pairs = [(one.before.tokens, one.after.tokens) for one in words]
    return [(left[0], right[0]) for left, right in pairs if left and right]
