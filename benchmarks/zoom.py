"""Deep zoom: ``python benchmarks/zoom.py [--lengths 8192,32768] [--publish]``.

Tiles of 256 × 256 cells of one causal head of width 64, computed on demand from q, k and
log-sum-exp, at each length; q and k are random, as times do not depend on them. Then the pyramid
of the levels above, the 20 strongest weights, and the first small map of a head. Each length is a
process of its own. Times are processor time on one thread (median of 7 tiles at different places),
so that they hold on a machine that does other work, too; the pyramid is shared among threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from measure import machine, peak_memory, publish, seconds, table

from clearhead.trace.head_view import HeadView
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.seen import Seen
from clearhead.trace.zoom import Tiles, small_maps

LENGTHS = (8_192, 32_768, 131_072)
PLACES = 7  # tiles of a level that are timed
WIDTH = 64

Found = dict[str, list[float]]  # seconds; of what has one figure a list of one


def head_of(tokens: int) -> HeadView:
    """One causal head with two query heads on one key head."""
    make = torch.Generator().manual_seed(0)
    query = torch.randn(1, 2, tokens, WIDTH, generator=make)
    key = torch.randn(1, 1, tokens, WIDTH, generator=make)
    low, high = torch.zeros(1, tokens, dtype=torch.long), torch.arange(1, tokens + 1)[None]
    facts = LayerFacts(
        "L0", "", "self", True, 2, 1, WIDTH, WIDTH, WIDTH**-0.5, None, torch.float32, ""
    )
    sums = torch.log(torch.arange(1, tokens + 1, dtype=torch.float32)).expand(1, 2, -1) + 0.5
    rules = [RowRules(tokens, tokens, RowMask(low, high))]
    return Seen([LayerRecord(facts, query, key, sums, pieces=rules)])["L0H0"]


def spent(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def tile_seconds(tiles: Tiles, level: int) -> float:
    """The median over tiles below the diagonal, none of them computed before."""
    down, _ = tiles.grid.tiles(level)
    places = [(row, row // 2) for row in torch.linspace(0, down - 1, PLACES).int().tolist()]
    once = dict.fromkeys(places)
    return statistics.median(spent(partial(tiles.tile, level, *place)) for place in once)


def measured(tokens: int) -> Found:
    """Runs alone."""
    torch.set_num_threads(1)
    view = head_of(tokens)
    before = peak_memory()
    result: Found = {}
    for pool in ("max", "mean"):
        tiles = Tiles(view, pool, hidden=[0], cache_bytes=0)
        quick = range(min(tiles.pyramid.base, tiles.levels))
        result[pool] = [tile_seconds(tiles, level) for level in quick]
        if pool == "max":
            result["pyramid"] = [spent(partial(list, tiles.build()))]
            result["above"] = [tile_seconds(tiles, n) for n in range(len(quick), tiles.levels)]
            result["strongest"] = [spent(tiles.strongest)]
    result["small"] = [spent(lambda: next(small_maps([view], hidden=[0])))]
    result["memory"] = [peak_memory() - before]
    return result


def rows_of(tokens: int, found: Found) -> list[str]:
    most = {name: seconds(max(times)) for name, times in found.items() if times}
    return [
        f"{tokens:,}", seconds(found["max"][0]), most["max"], most["mean"], most["above"],
        most["pyramid"], most["strongest"], most["small"], f"{found['memory'][0] / 1e6:.0f} MB",
    ]  # fmt: skip


HEADER = [
    "tokens", "single weights", "slowest level on demand, max", "the same, mean",
    "from the pyramid", "the pyramid", "20 strongest", "first small map of a head", "memory",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(measured(given.alone)))
        return
    rows = []
    for length in map(int, given.lengths.split(",")):
        command = [sys.executable, __file__, "--alone", str(length)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(rows_of(length, json.loads(done.stdout.splitlines()[-1])))
    text = (
        f"`python benchmarks/zoom.py` on {machine()}. One tile is 256 × 256 cells; processor time "
        f"on one thread.\n\n{table(HEADER, rows)}"
    )
    print(text)
    if given.publish:
        publish("zoom", text)


if __name__ == "__main__":
    main()
