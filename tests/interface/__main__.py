"""``python -m tests.interface [name …]``: the whole walk, with counts; ``--write`` keeps the list.

A name is a call's: "attention", "attention, plain". The list of what is accepted is
``accepted.json``: read its difference before you commit it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict

from tests.interface.accepted import unlisted, write_accepted
from tests.interface.surface import parameters, surface
from tests.interface.walk import GOOD, Outcome, cases, confined, outcome


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("--")] or None
    start = time.monotonic()
    with confined():
        outcomes = [outcome(case) for case in cases(names)]
    if "--write" in arguments:
        write_accepted(outcomes)
    faults = [*unlisted(outcomes), *(one for one in outcomes if one.kind not in GOOD)]
    for line in summary(faults):
        print(line)  # noqa: T201
    counts = Counter(one.kind for one in outcomes if one.kind != "unmade")
    called = surface()
    print(  # noqa: T201
        f"{len(called)} names, {sum(len(parameters(one)) for one in called.values())} arguments, "
        f"{counts.total():,} calls in {time.monotonic() - start:.0f} s: "
        + ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    )
    return int(bool(faults))


def summary(faults: list[Outcome]) -> list[str]:
    """A line for each argument and kind of fault: how many, which values, and the first reason."""
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for one in faults:
        groups[one.case.place, one.kind].append(one)
    return [
        f"{kind:9} {place} × {len(some)} ← {'; '.join(one.case.value for one in some[:4])}: "
        f"{some[0].reason!r}"
        for (place, kind), some in groups.items()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
