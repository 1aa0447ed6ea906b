"""The reviewed list of what is accepted: for each argument the values that are, and no others."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.interface.values import SINGLE
from tests.interface.walk import Outcome, cases

FILE = Path(__file__).with_name("accepted.json")


def read_accepted() -> dict[str, frozenset[str]]:
    """The accepted values of each argument, "attention.window"."""
    groups = json.loads(FILE.read_text())
    return {place: frozenset(group["values"]) for group in groups for place in group["arguments"]}


def unlisted(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes that the list does not expect: accepted though it does not say so, or refused."""
    known = read_accepted()
    found = []
    for one in outcomes:
        listed = one.case.value in known.get(one.case.place, ())
        if listed and one.kind == "refused":
            found.append(Outcome(one.case, "unlisted", f"no longer accepted: {one.reason}"))
        elif one.kind == "accepted" and not listed:
            found.append(Outcome(one.case, "unlisted", "accepted, but not on the list"))
    return found


def write_accepted(outcomes: Iterable[Outcome]) -> None:
    """Write what these outcomes accept; arguments that accept the same stand together.

    Arguments that were not walked over keep their entry, unless there are no such arguments.
    """
    found: dict[str, list[str]] = {}
    for one in outcomes:
        values = found.setdefault(one.case.place, [])
        if one.kind == "accepted":
            values.append(one.case.value)
    there = {case.place for case in cases()}
    kept = {place: list(values) for place, values in read_accepted().items() if place in there}
    found = {place: (kept | found)[place] for place in sorted(there & {*kept, *found})}
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    order = {name: number for number, name in enumerate(SINGLE)}
    for place, values in found.items():
        values.sort(key=lambda value: (order.get(value, len(order)), value))
        groups[tuple(values)].append(place)
    listed = [{"values": list(values), "arguments": places} for values, places in groups.items()]
    listed.sort(key=lambda group: (len(group["values"]), group["arguments"]))
    FILE.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
