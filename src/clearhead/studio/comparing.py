"""The difference of what the two sides of a page show: of two texts, or of two models."""

from __future__ import annotations

from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.studio.looking import Pane
from clearhead.studio.worker import Job

LISTED = 12


def send_difference(one: Pane, other: Pane, job: Job) -> None:
    """Send the heads, words and weights that differ most."""
    if one.look is None or other.look is None:
        raise InputError("there are no two looks to compare yet.")
    found = make_difference(one.look, other.look, names=(one.model, other.model))
    job.tell(
        "compared",
        heads=[[change.before, change.after, change.distance] for change in found.heads[:LISTED]],
        words=[
            [change.before.text, change.after.text, change.distance, change.head]
            for change in found.words[:LISTED]
        ],
        cells=[
            [change.head, change.row.text, change.column_text, change.before, change.after]
            for change in found.changes[:LISTED]
        ],
        gone=list(found.gone),
        new=list(found.new),
        notes=list(found.notes),
    )
