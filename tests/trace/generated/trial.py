"""All checks of one generated attention."""

from __future__ import annotations

import random
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from clearhead.trace.watching.watch import watch
from clearhead.trace.watching.watched import Watched
from tests.trace.generated.entry import Entry
from tests.trace.generated.falsified import unnoticed
from tests.trace.generated.reference import Expected, expected, repeated
from tests.trace.generated.runs import Case, same
from tests.trace.generated.shown import compared, shown_of
from tests.trace.generated.spec import Narrowed, Spec, sampled

GOOD = {
    "exact": "all weights are right, verify says exact, falsified records are found",
    "missed": "what is not shown is named, with its module and the reason; what is shown is right",
    "not a number": "the model's own weights are NaN, and verify does not call them exact",
}
FAILURES = {
    "broken": "a forward that works unwatched raises while it is watched",
    "changed": "the model computes something else while, or after, it is watched",
    "wrong, called exact": "wrong weights, and verify says exact",
    "silent": "attention ran, is not shown, and nothing says so",
    "missed, though ordinary": "attention as most models write it is named instead of seen",
    "lie not noticed": "a falsified record is called exact",
    "wrong, not exact": "wrong weights, which verify does not call exact",
    "false alarm": "right weights that verify does not call exact",
    "error": "looking at the weights, or verifying, raises",
    "generator": "the generated module does not compute what its reference says",
}
"""The kinds of failure, the most serious first."""


@dataclass(frozen=True)
class Outcome:
    """What became of one attention."""

    spec: Spec
    kind: str  # one of GOOD or FAILURES
    detail: str = ""
    largest: float = 0.0

    @property
    def good(self) -> bool:
        """True if nothing failed."""
        return self.kind in GOOD


def tried(spec: Spec, lies: int | None = 2) -> Outcome:
    """Run one attention unwatched and watched, and check everything about it.

    ``lies`` falsifications of its record are tried; None: all of them.
    """
    case = Case(spec)
    try:
        plain = case.run()
        calls = expected_calls(case)
    except Exception as error:
        return Outcome(spec, "generator", f"{type(error).__name__}: {error}")
    problem = _own_problem(case, plain, calls)
    if problem:
        return Outcome(spec, "generator", problem)
    try:
        with watch(case.model, values=spec.values) as seen:
            watched = case.run()
    except Exception as error:
        return Outcome(spec, "broken", _short(error))
    if not same(plain, watched):
        return Outcome(spec, "changed", _largest_change(plain, watched))
    if not same(plain, case.run()):
        return Outcome(spec, "changed", "only afterwards")
    try:
        return _judged(case, seen, [[call for call, _ in layer] for layer in calls], lies)
    except Exception as error:
        return Outcome(spec, "error", _short(error))


def tried_number(number: int, seed: int, lies: int | None, only: Narrowed = ()) -> Outcome:
    """The trial of a sampled attention, in whatever process."""
    torch.set_num_threads(1)
    return tried(sampled(seed, number, only), lies)


def with_number(
    number: int, seed: int, lies: int | None, only: Narrowed = ()
) -> tuple[int, Outcome]:
    """The same for several processes, which end in any order. It stands here because they do not
    import the module that was started."""
    return number, tried_number(number, seed, lies, only)


def expected_calls(case: Case) -> list[list[tuple[Expected, Entry]]]:
    """The reference of every call of every layer, with what was multiplied."""
    return [
        [(expected(case.spec, layer, entry), entry) for entry in diary]
        for layer, diary in zip(case.model.layers, case.diaries(), strict=True)
    ]


def _own_problem(case: Case, plain: list[Tensor], calls: list[list[tuple[Expected, Entry]]]) -> str:
    """Why a reference cannot be trusted: it must agree with what the module itself computed."""
    if not same(plain, case.run()):
        return "two runs differ"
    for layer in calls:
        for call, entry in layer:
            weights, output = entry.weights, entry.output
            there = ~call.blind[..., None]
            large = 8 if case.spec.scores == "large" else 1  # scores in the hundreds are rounded
            slack = 64 * large * torch.finfo(entry.query.dtype).eps
            if weights is not None:
                excess = (weights.double() - call.weights).abs() - 4 * call.bound
                off = torch.where(there, excess.nan_to_num(9e9), 0.0).max()
                if not float(off) <= slack:
                    return f"own weights differ by {float(off):.2g}"
            value = repeated(entry.value.double(), call.weights.shape[1])
            unknown = case.spec.mode == "train, dropout" or bool(value.isnan().any())
            if output is not None and not unknown:
                difference = (call.weights @ value - output.double()).abs()
                off = torch.where(there, difference.nan_to_num(9e9), 0.0).max()
                limit = (slack + 4 * float(call.bound.max())) * (1 + float(value.abs().max())) * 8
                if not float(off) <= limit:
                    return f"own output differs by {float(off):.2g}"
    return ""


def _judged(
    case: Case, seen: Watched, calls: Sequence[Sequence[Expected]], lies: int | None
) -> Outcome:
    spec, shown, largest, missing = case.spec, shown_of(seen), 0.0, []
    exact = bool(seen.records) and bool(seen.verify().exact)
    for number, layer in enumerate(calls):
        path = f"layers.{number}"
        here = [one for one in shown if one.path == path or one.path.startswith(f"{path}.")]
        calls_here = layer if exact else [call.not_exact() for call in layer]
        found = compared(here, calls_here, _placed(case, calls_here, number))
        largest = max(largest, found.largest)
        if found.verdict == "wrong":
            return Outcome(spec, f"wrong, {'called exact' if exact else 'not exact'}", found.detail)
        if found.verdict != "right":
            missing.append(f"{path}: {found.verdict} {found.detail}")
    strangers = {one.path for one in shown if not one.path.startswith("layers.")}
    if strangers:
        return Outcome(spec, "wrong, called exact", f"shown at {sorted(strangers)}")
    numbers = not any(bool(call.blind.any()) for layer in calls for call in layer)
    if missing:
        return _of_missing(spec, seen, missing, largest, spec.ordinary and numbers)
    if not exact and not numbers:
        return Outcome(spec, "not a number", "", largest)
    if not exact:
        return Outcome(spec, "false alarm", str(seen.verify()), largest)
    if seen.missed:
        return Outcome(spec, "false alarm", f"all is shown, but {seen.missed}", largest)
    with tempfile.TemporaryDirectory() as folder:
        passed = unnoticed(seen, Path(folder), random.Random(spec.seed), lies)
    if passed:
        return Outcome(spec, "lie not noticed", passed[0], largest)
    return Outcome(spec, "exact", "", largest)


def _placed(case: Case, calls: Sequence[Expected], number: int) -> list[Expected]:
    """The calls with keys by position: a ring buffer may be shown as the text it holds."""
    turns = case.model.rounds.count(number)
    columns = [one for one in case.columns for _ in range(turns)]
    if case.spec.cache != "ring" or len(columns) != len(calls):
        return []
    width = 1 + max(int(one.max()) for one in columns)
    return [call.placed(one, width) for call, one in zip(calls, columns, strict=True)]


def _of_missing(
    spec: Spec, seen: Watched, missing: list[str], largest: float, ordinary: bool
) -> Outcome:
    """What is not shown must be named, with its module and the reason."""
    said = seen.missed
    path = missing[0].partition(":")[0]
    if not said:
        return Outcome(spec, "silent", missing[0], largest)
    if path not in said:
        return Outcome(spec, "silent", f"{missing[0]}; missed only says: {said}", largest)
    kind = "missed, though ordinary" if ordinary else "missed"
    return Outcome(spec, kind, said, largest)


def _largest_change(plain: list[Tensor], watched: list[Tensor]) -> str:
    if len(plain) != len(watched) or any(
        one.shape != other.shape or one.dtype != other.dtype
        for one, other in zip(plain, watched, strict=False)
    ):
        return "shapes or dtypes differ"
    largest = max(
        float((one.double() - other.double()).abs().nan_to_num(0).max())
        for one, other in zip(plain, watched, strict=True)
    )
    return f"by at most {largest:.2g}"


def _short(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}:{last.lineno})"
