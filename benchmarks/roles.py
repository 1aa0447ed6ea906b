"""What heads do, and what finding out costs: ``python benchmarks/roles.py [--quick] [--publish]``.

Universal Dependencies English EWT, dev (``--corpus``, by default ../shared/data/ud_ewt/dev.conllu),
with smollm2 and minilm. For each relation the head that is best on one half of the sentences, as it
does on the other half: accuracy, baseline, cases, interval (after Clark et al. 2019, table 1). Time
is that of counting all properties of all heads against the plain forward over the same batches;
memory is the peak of a process of its own, for a quarter of the corpus and for all of it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import torch
from measure import machine, megabytes, peak_memory, publish, seconds, table

import clearhead as ch
from clearhead.explain.roles.batches import batches
from clearhead.explain.roles.built_in import BUILT_IN
from clearhead.explain.roles.corpus import Corpus, corpus_of
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.prepared import prepare
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.explain.roles.scores import Score
from clearhead.explain.roles.tally import Tally

ROOT = Path(__file__).resolve().parents[1]
EWT = ROOT.parent / "shared" / "data" / "ud_ewt" / "dev.conllu"
MODELS = ("minilm", "smollm2")
PROPERTIES = tuple(BUILT_IN.values())
LEAST = 40  # cases of a relation in the confirming half, to be in the table


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
        "relation",
        "best head",
        "right",
        "95 %",
        "for free",
        "at an offset",
        "cases",
        "named",
    ]
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
    """Seconds of counting and of the plain forward over the same batches, after a warm-up."""
    reader = Reader(ch.load(name))
    count = Count(reader, PROPERTIES)
    read = (reader.read(sentence) for sentence in corpus)
    fitting = [one for one in read if 2 <= len(one.tokens) <= reader.longest]
    ready = list(batches([prepare(one, PROPERTIES, Tally().book) for one in fitting]))
    forward = [(b.ids(), torch.arange(b.width) < b.lengths[:, None]) for b in ready]
    for ids, real in forward[:3]:
        reader.run(ids, real)
    start = time.perf_counter()
    for ids, real in forward:
        reader.run(ids, real)
    plain = time.perf_counter() - start
    start = time.perf_counter()
    for _ in count.windows(corpus, Tally()):
        pass
    counting = time.perf_counter() - start
    tokens = sum(len(one.tokens) for one in fitting)
    ratio = f"{counting / plain:.2f}×"
    return [name, f"{tokens:,}", seconds(plain), seconds(counting), ratio]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first 200 sentences only")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--corpus", type=Path, default=EWT)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--sentences", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    given = parser.parse_args()
    corpus = part_of(corpus_of(given.corpus), given.sentences or (200 if given.quick else None))
    if given.memory:
        one_memory(given.memory, corpus)
        return
    total = sum(1 for _ in corpus)
    parts = [f"`python benchmarks/roles.py` on {machine()}. {corpus.name}, {total:,} sentences."]
    found = {name: find_roles(ch.load(name), corpus) for name in given.models}
    for name, roles in found.items():
        parts += [f"**{name}: the best head for each relation**\n\n{relations(roles)}"]
        parts += [f"**{name}: other roles**\n\n{others(roles)}"]
        parts += [f"**{name}: heads switched off**\n\n{effects(roles)}"]
    costs = [cost(name, corpus) for name in given.models]
    header = ["", "tokens", "plain forward", "all properties of all heads", "of the forward"]
    parts.append(f"**Time**\n\n{table(header, costs)}")
    sizes = [total // 4, total]
    rows = [memory(name, given.corpus, sizes) for name in given.models]
    memory_header = ["", *(f"{size:,} sentences" for size in sizes)]
    parts.append(f"**Peak memory of the process**\n\n{table(memory_header, rows)}")
    print("\n\n".join(parts))
    if given.publish:
        publish("roles", "\n\n".join(parts))


if __name__ == "__main__":
    main()
