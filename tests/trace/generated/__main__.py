"""``python -m tests.trace.generated --count 10000 --seed 0``: many attentions, and a table."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.trace.generated.smallest import cause, smallest
from tests.trace.generated.spec import DIMENSIONS, Narrowed, field_of, sampled
from tests.trace.generated.trial import FAILURES, GOOD, Outcome, with_number

KINDS = (*GOOD, *FAILURES)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "watch.md"
BEGIN, END = "<!-- generated attentions -->", "<!-- /generated attentions -->"


def outcomes(
    numbers: Sequence[int], seed: int, jobs: int, lies: int | None, only: Narrowed = ()
) -> Iterator[tuple[int, Outcome]]:
    """All trials, as they end."""
    work = partial(with_number, seed=seed, lies=lies, only=only)
    if jobs == 1:
        yield from map(work, numbers)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(work, numbers, chunksize=16)


def narrowed(given: str) -> tuple[str, tuple[Any, ...]]:
    """``softmax=temperature|clamp``: a dimension with some of its choices."""
    dimension, _, wanted = given.partition("=")
    known = {str(choice): choice for choice in DIMENSIONS.get(dimension, ())}
    chosen = tuple(known[one] for one in wanted.split("|") if one in known)
    if len(chosen) != len(wanted.split("|")):
        raise argparse.ArgumentTypeError(f"{dimension} has {'|'.join(known) or 'no choices'}")
    return field_of(dimension), chosen


def kept(path: Path | None, seed: int) -> dict[int, Outcome]:
    """What an earlier run with this seed wrote down, by number."""
    if path is None or not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return {
        line["number"]: Outcome(
            sampled(seed, line["number"]), line["kind"], line["detail"], line["largest"]
        )
        for line in lines
        if line["seed"] == seed
    }


def keep(path: Path | None, seed: int, number: int, one: Outcome) -> None:
    """One line for each trial, written at once: a run that is broken off can be continued."""
    if path is not None:
        line = {"seed": seed, "number": number, "kind": one.kind, "detail": one.detail}
        with path.open("a") as file:
            file.write(json.dumps(line | {"largest": one.largest}) + "\n")


def progress(done: int, count: int, kinds: Counter[str], began: float) -> None:
    """One line, written over."""
    failed = sum(kinds[kind] for kind in FAILURES)
    rate = done / (time.monotonic() - began)
    line = f"{done:,} of {count:,}, {failed:,} failed, {rate:.0f} a second"
    sys.stderr.write(f"\r{line}")
    sys.stderr.flush()


def table(found: list[Outcome], dimensions: Iterable[str] = DIMENSIONS) -> str:
    """How many of each kind, for every choice of these dimensions."""
    kinds = [kind for kind in KINDS if any(one.kind == kind for one in found)]
    lines = [f"| | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    total = Counter(one.kind for one in found)
    lines.append(f"| **all {len(found):,}** | {_cells(total, kinds)} |")
    for dimension in dimensions:
        choices = DIMENSIONS[dimension]
        by_choice: dict[object, Counter[str]] = defaultdict(Counter)
        for one in found:
            by_choice[getattr(one.spec, field_of(dimension))][one.kind] += 1
        for choice in dict.fromkeys(choices):
            lines.append(f"| {dimension}: {choice} | {_cells(by_choice[choice], kinds)} |")
    return "\n".join(lines)


def _cells(counted: Counter[str], kinds: list[str]) -> str:
    return " | ".join(f"{counted[kind]:,}" if counted[kind] else "" for kind in kinds)


def failures(found: list[Outcome], each: int) -> str:
    """A few of each kind of failure, the most serious first, as code that makes them again."""
    lines = []
    for kind, meaning in FAILURES.items():
        those = [one for one in found if one.kind == kind]
        if those:
            lines.append(f"\n{kind} ({len(those):,}): {meaning}")
            lines += [f"  {one.detail}\n    {one.spec}" for one in those[:each]]
    return "\n".join(lines)


def causes(found: list[Outcome], each: int, lies: int | None) -> str:
    """The smallest attentions that fail in the same ways, with how often they were the cause."""
    lines = []
    for kind, meaning in FAILURES.items():
        those = [one for one in found if one.kind == kind][:each]
        if those:
            shrunk = [smallest(one, lies) for one in those]
            counted = Counter(cause(one) for one in shrunk)
            lines.append(f"\n{kind}: {meaning}; causes of {len(those):,}")
            for spec, count in counted.most_common():
                first = next(one for one in shrunk if cause(one) == spec)
                lines.append(f"  {count:4} × {first.detail}\n         {first.spec}")
    return "\n".join(lines)


def publish(found: list[Outcome], seed: int) -> None:
    """Write what was found to docs/watch.md, with the two dimensions that decide most."""
    kinds = [kind for kind in KINDS if any(one.kind == kind for one in found)]
    meanings = "".join(f"\n- *{kind}*: {({**GOOD, **FAILURES})[kind]}" for kind in kinds)
    about = f"{len(found):,} attentions, seed {seed}:\n{meanings}\n"
    text = f"{about}\n{table(found, ('layout', 'softmax'))}"
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def collected(given: argparse.Namespace) -> list[Outcome]:
    """All outcomes, with those that a file has already; an interrupted run keeps what it has."""
    asked = range(given.first, given.first + given.count)
    known = kept(given.file, given.seed)
    found = [known[number] for number in asked if number in known]
    left = [number for number in asked if number not in known]
    kinds, began = Counter(one.kind for one in found), time.monotonic()
    for wanted in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wanted, signal.default_int_handler)
    try:
        for done, (number, one) in enumerate(
            outcomes(left, given.seed, given.jobs, given.lies or None, given.only), start=1
        ):
            found.append(one)
            kinds[one.kind] += 1
            keep(given.file, given.seed, number, one)
            if not one.good:
                sys.stderr.write(f"\n{one.kind}: {one.detail}\n  {one.spec}\n")
            if done % 20 == 0 or done == len(left):
                progress(done, len(left), kinds, began)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trace.generated", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--lies", type=int, default=3, help="falsifications of each; 0: all")
    parser.add_argument("--each", type=int, default=5, help="failures of a kind that are shown")
    parser.add_argument("--file", type=Path, help="outcomes are kept here, and continued from here")
    parser.add_argument("--publish", action="store_true", help="write counts to docs/watch.md")
    parser.add_argument("--causes", type=int, default=0, help="of a kind that are made smaller")
    parser.add_argument(
        "--only", type=narrowed, action="append", default=[], metavar="DIMENSION=CHOICE|…",
        help="these choices alone",
    )  # fmt: skip
    given = parser.parse_args()
    if given.only and (given.file or given.publish):
        parser.error("--only is for a look at some; --file and --publish are for all")
    found = collected(given)
    if given.publish:
        publish(found, given.seed)
    parts = [table(found), failures(found, given.each)]
    if given.causes:
        parts.append(causes(found, given.causes, given.lies or None))
    sys.stderr.write("\n")
    sys.stdout.write("\n".join([*parts, ""]))
    return 0 if all(one.good for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
