"""What heads do, and what finding out costs: ``python benchmarks/roles.py [--quick] [--publish]``.

Universal Dependencies English EWT, dev (``--corpus``, by default build/data/ud_ewt/dev.conllu),
with smollm2 and minilm. For each relation the head that is best on one half of the sentences, as it
does on the other half: accuracy, baseline, cases, interval (after Clark et al. 2019, table 1).

Time: reading sentences, running them and counting all properties of all heads, against nothing but
the forward over the same batches; the two take turns. Memory: the peak of a process of its own, for
a tenth of the corpus, half of it and all of it. ``--publish`` writes the tables of relations to
docs/roles.md and everything else to docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import torch
from measure import (
    DATA,
    ROOT,
    corpus_at,
    machine,
    megabytes,
    peak_memory,
    publish,
    seconds,
    table,
)

import clearhead as ch
from clearhead.explain.roles.batches import Batch, batches
from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.corpus.sources import Corpus, corpus_of
from clearhead.explain.roles.counting import WINDOW, Count
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.prepared import prepare
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.explain.roles.scores import Score

EWT = DATA / "ud_ewt" / "dev.conllu"
MODELS = ("minilm", "smollm2")
PROPERTIES = tuple(BUILT_IN.values())
LEAST = 40  # cases of a relation in the confirming half, to be in the table
ROUNDS = 3  # of time
PAGE = ROOT / "docs" / "roles.md"


def part_of(corpus: Corpus, sentences: int | None) -> Corpus:
    """The first sentences of a corpus."""
    if sentences is None:
        return corpus
    return Corpus(corpus.name, lambda: islice(iter(corpus), sentences), key=f"{sentences}")


def relations(roles: Roles) -> str:
    rows = []
    for report in roles.properties:
        score = roles.best(report.name) if "→" in report.name else None
        if score is not None and score.cases >= LEAST:
            rows.append(_row(roles, score))
    rows.sort(key=lambda row: -int(row[2].rstrip(" %")))
    header = [
        "relation", "best head", "right", "95 %", "for free", "of it at an offset", "cases",
        "named",
    ]  # fmt: skip
    return table(header, rows)


def _row(roles: Roles, score: Score) -> list[str]:
    low, high = score.interval
    named = (score.head, score.property_name) in {(r.head, r.property) for r in roles.named}
    return [
        score.property_name, score.head, f"{100 * score.accuracy:.0f} %",
        f"{100 * low:.0f} … {100 * high:.0f} %", f"{100 * score.baseline:.0f} %",
        f"{score.offset:+d}: {100 * score.at_offset:.0f} %", f"{score.cases:,}",
        "yes" if named else "",
    ]  # fmt: skip


def others(roles: Roles) -> str:
    """Roles that are no relations: how many heads, and the best of them."""
    rows = []
    for name in dict.fromkeys(role.property for role in roles.named):
        if roles.kind_of(name) in ("relation", "rest"):
            continue
        alike = [role for role in roles.named if role.property == name]
        score = alike[0].confirmed
        low, high = score.interval
        rows.append(
            [
                name, f"{len(alike)}", score.head, f"{100 * score.accuracy:.0f} %",
                f"{100 * low:.0f} … {100 * high:.0f} %", f"{100 * score.baseline:.0f} %",
                f"{score.cases:,}",
            ]
        )  # fmt: skip
    return table(["role", "heads", "best", "right", "95 %", "for free", "cases"], rows)


def effects(roles: Roles) -> str:
    rows = []
    for effect in roles.effects:
        changes = [
            f"{change.mean:+.3f} ± {change.error:.3f} ({change.positions})"
            if change.positions
            else "–"
            for change in (effect.at_cases, effect.elsewhere)
        ]
        rows.append([effect.head, effect.property, effect.way, *changes])
    measure = roles.effects[0].measure if roles.effects else "loss"
    return table(["head", "role", "replaced by", f"{measure}: its cases", "elsewhere"], rows)


def cost(name: str, corpus: Corpus) -> list[str]:
    """Median seconds of counting and of the plain forward over the same batches, taking turns."""
    reader, sentences = Reader(ch.load(name)), list(corpus)
    ready: list[Batch] = []
    for first in range(0, len(sentences), WINDOW):
        read = map(reader.read, sentences[first : first + WINDOW])
        fitting = [one for one in read if 2 <= len(one.tokens) <= reader.longest]
        ready += batches([prepare(one, PROPERTIES, Tally().index) for one in fitting])
    forward = [(b.ids(), torch.arange(b.width) < b.lengths[:, None]) for b in ready]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(1 + ROUNDS):  # the first warms up
        start = time.perf_counter()
        for ids, real in forward:
            reader.run(ids, real)
        between = time.perf_counter()
        for _ in Count(reader, PROPERTIES).windows(corpus_of(sentences), Tally()):
            pass
        times[0].append(between - start)
        times[1].append(time.perf_counter() - between)
    plain, counting = (statistics.median(found[1:]) for found in times)
    tokens = sum(int(batch.lengths.sum()) for batch in ready)
    ratio = f"{counting / plain:.2f}×"
    sizes = [f"{len(sentences):,}", f"{tokens:,}"]
    return [name, *sizes, seconds(plain), seconds(counting), ratio]


def one_memory(name: str, corpus: Corpus) -> None:
    """Runs alone in a process: its peak memory in bytes."""
    for _ in Count(Reader(ch.load(name)), PROPERTIES).windows(corpus, Tally()):
        pass
    print(peak_memory())


def memory(name: str, path: Path, parts: list[int]) -> list[str]:
    row = [name]
    for part in parts:
        command = [sys.executable, __file__, "--memory", name, "--corpus", str(path)]
        done = subprocess.run(
            [*command, "--sentences", str(part)], capture_output=True, text=True, check=True
        )
        row.append(megabytes(int(done.stdout)))
    return row


def told(begun: float, what: str) -> None:
    """How far it is, on standard error."""
    print(f"{time.monotonic() - begun:5.0f} s  {what}", file=sys.stderr, flush=True)


def publish_relations(text: str) -> None:
    """Put the tables of relations into docs/roles.md, between their marks."""
    begin, end = "<!-- relations -->", "<!-- /relations -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    page = PAGE.read_text()
    if not pattern.search(page):
        raise SystemExit(f"docs/roles.md has no section {begin} … {end}")
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first 200 sentences only")
    parser.add_argument("--publish", action="store_true", help="write the tables to the docs")
    parser.add_argument("--corpus", type=Path, default=EWT, help="a CoNLL-U file")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--sentences", type=int, help="only so many, from the beginning")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    given = parser.parse_args()
    read = corpus_of(corpus_at(given.corpus, "a CoNLL-U file of UD English EWT"))
    corpus = part_of(read, given.sentences or (200 if given.quick else None))
    if given.memory:
        one_memory(given.memory, corpus)
        return
    begun, total = time.monotonic(), sum(1 for _ in corpus)
    found, costs, sizes = [], [], [max(1, total // 10), max(1, total // 2), total]
    where = f"{corpus.name}, {total:,} sentences, {machine()}"
    relation_parts, rows = [f"`python benchmarks/roles.py` on {where}."], []
    for name in given.models:
        told(begun, f"{name}: roles")
        roles = find_roles(ch.load(name), corpus)
        relation_parts.append(f"**{name}**\n\n{relations(roles)}")
        found.append(f"**{name}: roles other than relations**\n\n{others(roles)}")
        found.append(f"**{name}: heads switched off**\n\n{effects(roles)}")
        told(begun, f"{name}: time")
        costs.append(cost(name, part_of(corpus, max(1, total // 8))))
        told(begun, f"{name}: memory")
        rows.append(memory(name, given.corpus, sizes))
    time_header = ["", "sentences", "tokens", "forward alone", "with all counts", "of the forward"]
    memory_header = ["", *(f"{size:,} sentences" for size in sizes)]
    parts = [
        f"`python benchmarks/roles.py` on {where}. The best head for each relation: "
        "[roles.md](roles.md#what-real-models-show).",
        f"**Time** (median of {ROUNDS})\n\n{table(time_header, costs)}",
        f"**Peak memory of the process**\n\n{table(memory_header, rows)}",
        *found,
    ]
    print("\n\n".join([*relation_parts, *parts]))
    told(begun, "done")
    if given.publish:
        publish_relations("\n\n".join(relation_parts))
        publish("roles", "\n\n".join(parts))


if __name__ == "__main__":
    main()
