"""The map of a long text: tiles of one head on demand, small maps of all heads, step by step."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.make_look import evaluating, make_look, read_passage
from clearhead.generation.session import Session
from clearhead.studio.worker import Job
from clearhead.trace.head_name import parse_name
from clearhead.trace.labels import Labels
from clearhead.trace.seen import Seen
from clearhead.trace.watching.watch import watch
from clearhead.trace.zoom import Tiles, small_maps
from clearhead.trace.zoom.grid import TILE
from clearhead.views.page.zoom.axis import axis_json
from clearhead.views.page.zoom.tile_bytes import exact_bytes

STEP = 512  # tokens that are read at once, between two looks at whether somebody still waits
PATIENCE = 1.0  # seconds that a map waits for tiles at most, at each step
BETWEEN = 0.5  # seconds between two reports of how far a map is
LISTED = 20


@dataclass
class LongText:
    """A text that was read whole, and the head of it that is shown."""

    model: str
    text: str
    seen: Seen
    chosen: str
    tiles: Tiles | None = None
    number: int = -1  # of the request that the tiles answer

    @property
    def nbytes(self) -> int:
        """Memory of keys, queries and sums, and of the tiles that are kept."""
        return self.seen.nbytes + (0 if self.tiles is None else self.tiles.nbytes)

    @property
    def heads(self) -> list[str]:
        """The names of all heads."""
        return [
            f"{record.facts.name}H{number}"
            for record in self.seen.records
            for number in record.head_numbers
        ]


def read_long(thing: Loaded | Seen, model: str, text: str, job: Job) -> LongText:
    """Read a text for its map. Keys, queries and sums are kept: memory is linear in tokens."""
    seen = thing if isinstance(thing, Seen) else _read(thing, text, job)
    job.progress(1, 1, "choosing a head")
    look = make_look(seen) if isinstance(thing, Seen) else Look(seen, loaded=thing)
    chosen = look.chosen_head
    layer, head = parse_name(chosen)
    return LongText(model, text, seen, chosen if isinstance(head, int) else f"{layer}H0")


def _read(loaded: Loaded, text: str, job: Job) -> Seen:
    if loaded.config.kind != "decoder":
        return make_look(loaded, text).seen
    passage = read_passage(loaded, text)
    ids = [token.id for token in passage.tokens]
    refuse_too_long(loaded, len(ids))
    runner = Session(loaded).runner(ids)
    with evaluating(loaded), watch(loaded.model) as seen:
        for start in range(0, len(ids), STEP):
            job.progress(start, len(ids), "reading")
            runner.extend([ids[start : start + STEP]])
    seen.labels = Labels([passage])
    return seen


def refuse_too_long(loaded: Loaded, tokens: int) -> None:
    """Raise an InputError if what is kept of a text is more than half of this machine's memory."""
    config = loaded.config
    heads, shared = config.heads, config.kv_heads or config.heads
    each = 4 * config.layers * (heads * (config.head_width + 1) + shared * config.head_width)
    if not hasattr(os, "sysconf"):
        return
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    if tokens * each > room:
        raise InputError(
            f"this text has {tokens:,} tokens, whose queries and keys take "
            f"{tokens * each / 1e9:.1f} GB; this machine has room for "
            f"{room // each:,} tokens of {loaded.name}.",
            hint="drop a part of it.",
        )


def show_map(
    long: LongText, job: Job, head: str | None, wanted: Callable[[], bool] = lambda: False
) -> None:
    """Send what a page needs to ask for tiles; then compute what is too slow to wait for.

    That pauses while tiles are ``wanted``: somebody looks at a place where they are missing.
    """
    name = head or long.chosen
    view = long.seen[name]
    if not view.single:
        raise InputError(f"a map is of one head, such as L16H5; got {name}.")
    hidden = [0] if view.record.facts.causal else []
    tiles = Tiles(view, hidden=hidden)
    long.tiles, long.number = tiles, job.number
    info = {
        "rows": tiles.grid.rows, "columns": tiles.grid.columns, "levels": tiles.levels,
        "tile": TILE, "pool": "max", "hidden": hidden, "head": name, "measure": "weight",
    }  # fmt: skip
    axes = [
        axis_json(axis.passage, axis.length, label)
        for axis, label in ((view.rows, "rows"), (view.columns, "columns"))
    ]
    content = json.dumps(axes, ensure_ascii=False).encode("utf-8")
    missed = long.seen.missed
    job.tell("mapped", content, info=info | _state(tiles), heads=long.heads, missed=missed)
    told = time.monotonic()
    for _ in tiles.build():
        pause(job, wanted)
        if time.monotonic() - told > BETWEEN:
            told = time.monotonic()
            job.tell("mapping", **_state(tiles))
    job.tell("mapping", **_state(tiles), strongest=_strongest(tiles))


def pause(job: Job, wanted: Callable[[], bool]) -> None:
    """Let those go first who wait for a tile, or for something quick; raise if nobody waits for
    this job any more."""
    job.pause()
    end = time.monotonic() + PATIENCE
    while wanted() and time.monotonic() < end:
        time.sleep(0.002)
        job.check()


def _state(tiles: Tiles) -> dict[str, object]:
    """How much of it is counted, and the largest number of each level so far."""
    progress = tiles.pyramid.progress
    counted = progress.done / progress.total if progress.total else 1.0
    top = tiles.tile(tiles.levels - 1, 0, 0)
    most = max(float(top.numbers.max()), 1e-4)
    return {"counted": counted, "most": [most] * tiles.levels}


def _strongest(tiles: Tiles) -> list[dict[str, float]]:
    return [
        {"row": one.row, "column": one.column, "weight": one.weight}
        for one in tiles.strongest(LISTED)
    ]


def send_tile(long: LongText | None, job: Job, *, map: int, place: Sequence[int]) -> None:
    """Send one tile; of another map than the page's, nothing."""
    if long is None or long.tiles is None or long.number != map:
        job.tell("gone")
        return
    tile = long.tiles.tile(*place)
    job.tell("tile", exact_bytes(tile.numbers), complete=tile.complete)


def send_small_maps(
    long: LongText | None, job: Job, wanted: Callable[[], bool] = lambda: False
) -> None:
    """Send all heads as small maps: each soon, and again with more of its queries."""
    if long is None:
        job.tell("gone")
        return
    views = [long.seen[record.facts.name] for record in long.seen.records]
    causal = all(record.facts.causal for record in long.seen.records)
    for found in small_maps(views, hidden=[0] if causal else []):
        pause(job, wanted)
        rows, columns = found.numbers.shape
        content = found.numbers.float().contiguous().numpy().tobytes()
        job.tell(
            "small", content, head=found.head, rows=rows, columns=columns, counted=found.counted
        )
    job.tell("small maps")


def chapter() -> str:
    """A text of some thousand words that every Python carries: its manual."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name].strip() for name in ("naming", "objects"))[:14_000]
