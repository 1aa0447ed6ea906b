"""Try mutants of every format: ``python -m tests.hostile --mutants 1000000 --seed 1``.

Failures are made small and kept in ``tests/hostile/exhibits/``, one for each cause. ``--only``
tries a single mutant in this process and shows its error.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.hostile import exhibit
from tests.hostile.formats import FORMATS
from tests.hostile.mutant import Files, Format, mutant, write
from tests.hostile.outcome import FAILURES, GOOD, Outcome
from tests.hostile.worker import of_files_in_process, tried

WARM = 12  # uses of each specimen before the fork
BATCH = 400  # mutants of one format after another
MOST_EXHIBITS = 40  # of one format in a run


class Record:
    """What came of the mutants of one format so far."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.counts: Counter[str] = Counter()
        self.seconds = self.slowest = self.largest = 0.0
        self.kept: dict[tuple[str, str, str], Outcome] = {}
        self.times: Counter[tuple[str, str, str]] = Counter()

    def go_on(self, before: dict[str, Any]) -> None:
        """Add the counts of an earlier part of the same run."""
        self.counts.update({what: before[what] for what in (*GOOD, *FAILURES)})
        self.seconds = before["milliseconds"] / 1e3 * self.counts.total()
        self.slowest, self.largest = before["slowest seconds"], before["most megabytes"]

    def add(self, outcome: Outcome) -> bool:
        """Count an outcome; True if it is a failure of a new kind."""
        self.counts[outcome.what] += 1
        self.seconds += outcome.seconds
        self.slowest = max(self.slowest, outcome.seconds)
        self.largest = max(self.largest, outcome.megabytes)
        if not outcome.failed:
            return False
        self.times[outcome.key] += 1
        return self.kept.setdefault(outcome.key, outcome) is outcome


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000, help="how many, over all formats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="only these")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one mutant, with its error")
    parser.add_argument("--resume", action="store_true", help="go on from the file of --summary")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--sample", action="store_true", help="random numbers, not from 0 on")
    parser.add_argument("--keep", action="store_true", help="keep failures as exhibits")
    parser.add_argument("--replay", action="store_true", help="try the exhibits instead")
    parser.add_argument(
        "--summary", type=Path, help="write the counts to this file, again and again"
    )
    return parser.parse_args()


def shares(formats: list[Format], mutants: int) -> dict[str, int]:
    """How many mutants each format gets, by its weight."""
    whole = sum(format.weight for format in formats)
    return {format.name: max(1, round(mutants * format.weight / whole)) for format in formats}


def numbers_of(format: Format, many: int, seed: int, *, sample: bool = False) -> Sequence[int]:
    """The numbers to try: from 0 on, or drawn half from the walk and half from beyond it."""
    if not sample:
        return range(many)
    random = Random(f"{seed} {format.name}")
    walked = random.sample(range(format.steps), min(format.steps, many // 2))
    return [*(2 * step for step in walked), *range(1, 2 * (many - len(walked)), 2)]


def warmed(format: Format) -> None:
    """Use the good files once: they must work, and imports happen before the fork."""
    for files in format.specimens:
        for number in range(WARM):
            with tempfile.TemporaryDirectory() as folder:
                write(dict(files), Path(folder))
                format.use(Path(folder), Random(number))


def run(formats: list[Format], options: argparse.Namespace) -> list[Record]:
    console = Console(stderr=True)
    records = {format.name: Record(format) for format in formats}
    if options.resume and options.summary.exists():
        for name, before in json.loads(options.summary.read_text()).items():
            records[name].go_on(before)
    gc.freeze()  # so that the forked processes share what is in memory now
    many = shares(formats, options.mutants)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"),
               TimeRemainingColumn())  # fmt: skip
    end = time.monotonic() + 60 * options.minutes
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("mutants", total=sum(many.values()))
        waiting = {}
        for format in formats:
            warmed(format)
            waiting[format.name] = numbers_of(
                format, many[format.name], options.seed, sample=options.sample
            )[records[format.name].counts.total() :]
        rounds = max(1, -(-max(map(len, waiting.values())) // BATCH))
        for turn in range(rounds):
            for format in formats:
                record, numbers = records[format.name], waiting[format.name]
                size = -(-len(numbers) // rounds)
                progress.update(task, description=f"{format.name:14}")
                for outcome in tried(format, options.seed, numbers[turn * size :][:size]):
                    if record.add(outcome):
                        _show(console, record, outcome, options)
                    progress.advance(task)
                    if time.monotonic() > end:
                        return list(records.values())
            if options.summary:
                options.summary.write_text(json.dumps(summary(records.values()), indent=1))
    return list(records.values())


def _show(console: Console, record: Record, outcome: Outcome, options: argparse.Namespace) -> None:
    format = record.format
    line = f"{format.name} {outcome.number}: {outcome.what}; {outcome.error}  [{outcome.place}]"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    if options.keep and len(record.kept) <= MOST_EXHIBITS:
        found = mutant(format, options.seed, outcome.number)
        files = exhibit.smallest(
            found, lambda files: _again(format, files, outcome.number).key == outcome.key
        )
        exhibit.keep(format, options.seed, outcome, files)


def _again(format: Format, files: Files, number: int) -> Outcome:
    return of_files_in_process(format, files, (number,))


def summary(records: Iterable[Record]) -> dict[str, dict[str, object]]:
    """The counts of every format, as plain values."""
    return {
        record.format.name: {
            **{what: record.counts[what] for what in (*GOOD, *FAILURES)},
            "milliseconds": round(1e3 * record.seconds / max(1, record.counts.total()), 3),
            "slowest seconds": round(record.slowest, 2),
            "most megabytes": record.largest,
            "walk": record.format.steps,
            "causes": len(record.kept),
            "failures": [
                [*key, times, record.kept[key].number, record.kept[key].error]
                for key, times in record.times.most_common()
            ],
        }
        for record in records
    }


def shown(found: dict[str, dict[str, object]]) -> Table:
    table = Table(title="mutants by format and outcome")
    columns = (*GOOD, *FAILURES, "milliseconds", "slowest seconds", "most megabytes", "causes")
    table.add_column("format")
    for column in columns:
        table.add_column(column, justify="right")
    for name, counts in found.items():
        table.add_row(name, *(f"{counts[column]:,}" for column in columns))
    return table


def replay() -> int:
    """Try every exhibit; the number of those that still fail."""
    failed = 0
    for path in sorted(exhibit.FOLDER.glob("*.json")):
        name, files = exhibit.read(path)
        outcome = of_files_in_process(FORMATS[name], files, range(WARM))
        failed += outcome.failed
        said = " ".join(f"{outcome.error} {outcome.place}".split())
        sys.stdout.write(f"{path.name}: {outcome.what}; {said}\n")
    return failed


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    options = arguments()
    formats = [FORMATS[name] for name in options.format or FORMATS]
    if options.replay:
        return int(replay() > 0)
    if options.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            files = mutant(formats[0], options.seed, options.only).made()
            write(files, Path(folder))
            formats[0].use(Path(folder), Random(options.only))
        return 0
    found = summary(run(formats, options))
    Console(width=200).print(shown(found))
    if options.summary:
        options.summary.write_text(json.dumps(found, indent=1))
    return int(any(counts["causes"] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())
