"""The simplest attention that fails as a given one does: what it has in particular is the cause."""

from __future__ import annotations

from dataclasses import fields, replace

from tests.trace.generated.spec import Spec, possible
from tests.trace.generated.trial import Outcome, tried

PLAIN = Spec()


def smallest(outcome: Outcome, lies: int | None = 2) -> Outcome:
    """Take back one choice after the other, as long as the failure stays of the same kind."""
    best, changed = outcome, True
    while changed:
        changed = False
        for field in fields(Spec):
            plain = getattr(PLAIN, field.name)
            if field.name == "seed" or getattr(best.spec, field.name) == plain:
                continue
            simpler = possible(replace(best.spec, **{field.name: plain}))
            if _size(simpler) >= _size(best.spec):
                continue
            found = tried(simpler, lies)
            if found.kind == best.kind:
                best, changed = found, True
    return best


def cause(outcome: Outcome) -> Spec:
    """What failures with the same cause have in common: everything but the numbers."""
    return replace(outcome.spec, seed=0)


def _size(spec: Spec) -> int:
    """How many choices differ from the plain ones."""
    return sum(getattr(spec, field.name) != getattr(PLAIN, field.name) for field in fields(Spec))
