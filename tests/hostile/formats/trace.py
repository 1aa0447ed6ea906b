"""Trace files: opened, looked at, proved, drawn and written again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import clearhead as ch
from clearhead.trace.seen import Seen
from tests.hostile.kinds.safetensors import joined, split
from tests.hostile.mutant import Files, Format
from tests.shared.made_looks import passage_of, record_of
from tests.shared.synthetic import Options, passage, synthetic

TEXT = "The kids saw lions, so they left."


def use(folder: Path, random: Random) -> None:
    """Opens the trace; then one of the ways to look at it."""
    seen = ch.open_trace(folder / "run.trace")
    repr(seen)
    if not seen.layers:
        return  # nothing was recorded, and that is all there is to say
    view = seen[f"{seen.layers[0].name}H{seen.records[0].head_numbers[0]}"]
    view.row(0)
    way = random.randrange(12)
    if way == 0:
        str(seen.verify())
    elif way == 1:
        seen.save(folder / "again.trace")
        ch.open_trace(folder / "again.trace")
    elif way == 2:
        view.map(size=3)
        view.top(0)
    elif way < 6:
        look = ch.look(seen)
        ending = random.choice((".txt", ".svg", ".html", ".csv", ".json"))
        if ending == ".txt":
            str(look)
        else:
            look.save(folder / f"look{ending}")


def _specimens() -> list[dict[str, bytes]]:
    words = passage_of(TEXT)
    count = len(words)
    plain = Seen([record_of(f"L{n}", count, count, causal=True, seed=n) for n in range(2)], words)
    odd = synthetic(
        Options(queries=7, keys=7, kv_heads=2, group=2, causal=True, padded=True, bias="distance",
                softcap=5.0, sinks=True, blind=True)
    ).record  # fmt: skip
    rich = Seen([odd], [passage("a|b|c|d|e|f|[X]")], missed="a layer\nwas missed")
    dense = synthetic(Options(queries=5, keys=7, dense=True, bias="dense", values=False)).record
    with tempfile.TemporaryDirectory() as place:
        return [
            {"run.trace": seen.save(Path(place) / f"{n}.trace").read_bytes()}
            for n, seen in enumerate((plain, rich, Seen([dense])))
        ]


def repaired(files: Files) -> Files:
    """The trace without checksums, as older versions wrote it."""
    data = files["run.trace"]
    try:
        assert isinstance(data, bytes)
        header, body = split(data)
        tree = json.loads(header)
        del tree["__metadata__"]["clearhead.trace.crc32"]
        text = tree["__metadata__"]["clearhead.trace"]
        start = text.rindex(', "checksums": {')  # the last of its fields
        tree["__metadata__"]["clearhead.trace"] = text[:start] + "}"
        return files | {"run.trace": joined(json.dumps(tree), body)}
    except Exception:  # no longer a file with tensors
        return files


TRACE = Format("trace", _specimens, use, weight=1.5, repaired=repaired)
