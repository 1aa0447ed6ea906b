"""The studio: ``python benchmarks/studio.py [--only typing,writing,…] [--publish]``.

All through the real server. Typing is measured in Chromium: from the last key to the drawn picture,
the pause of 150 ms included, the median of several keys. Writing is compared with ``ch.generate``
on the same engine, in turns. Tiles are of traces with random queries and keys, 64 wide; of each
level the one with the most weights and one in the middle are asked for, while the map is still
being counted and after that. ``--publish`` writes each part's table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import pydoc_data.topics
import statistics
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from measure import machine, publish, table

import clearhead as ch
from clearhead.studio.studio import Studio
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules

WORDS = (30, 300)
LENGTHS = (8_192, 32_768, 131_072)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Line:
    """A connection to the studio."""

    def __init__(self, studio: Studio | SimpleNamespace) -> None:
        from websockets.sync.client import connect
        from websockets.typing import Origin

        address = studio.url.replace("http", "ws", 1) + "live"
        origin = Origin(f"http://127.0.0.1:{studio.port}")
        self.line = connect(address, origin=origin, max_size=None, proxy=None).__enter__()
        self.number = 0

    def send(self, asked: str, **fields: Any) -> int:
        self.number += 1
        self.line.send(json.dumps({"id": self.number, "do": asked, **fields}))
        return self.number

    def until(self, *kinds: str) -> dict[str, Any]:
        while True:
            data = self.line.recv(timeout=600)
            head = (
                data if isinstance(data, str) else data[4 : 4 + struct.unpack_from("<I", data)[0]]
            )
            found: dict[str, Any] = json.loads(head)
            if found["kind"] in kinds:
                return found


def words(count: int) -> str:
    return " ".join(" ".join(pydoc_data.topics.topics.values()).split()[200 : 200 + count])


def typing(studio: Studio, keys: int) -> list[list[str]]:
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        for count in WORDS:
            page = browser.new_page()
            page.goto(studio.url)
            page.wait_for_selector(".pane[data-drawn]", timeout=120_000)
            field = page.get_by_label("Text", exact=True)
            field.fill(words(count))
            page.wait_for_selector("#studio[data-latency]", timeout=120_000)
            found = []
            for letter in "adifferent"[:keys]:
                root = page.locator("#studio")
                root.evaluate("(one) => one.removeAttribute('data-latency')")
                field.press("End")
                field.press(letter)
                page.wait_for_selector("#studio[data-latency]", timeout=120_000)
                found.append(int(root.get_attribute("data-latency") or 0))
            rows.append([f"{count} words: key to picture", f"{statistics.median(found):.0f} ms"])
            page.close()
        browser.close()
    return rows


PROMPT = "Students opened their"
_lines: dict[str, Line] = {}  # of the process that plays the page


def written(address: SimpleNamespace, model: str, turn: int, count: int) -> float:
    """Seconds until a page has all tokens."""
    line = _lines.setdefault(address.url, Line(address))
    began = time.perf_counter()
    settings = {"temperature": 0.7}
    about = {"pane": 0, "model": model, "text": PROMPT, "ids": []}
    line.send("write", **about, settings=settings, count=count, seed=turn)
    line.until("written")
    return time.perf_counter() - began


def writing(loaded: ch.Loaded, studio: Studio, turns: int, count: int = 100) -> list[list[str]]:
    """The page is another process, as a browser is."""
    own, served, session = [], [], ch.Session(loaded)
    address = SimpleNamespace(url=studio.url, port=studio.port)
    with multiprocessing.get_context("spawn").Pool(1) as page:
        for turn in range(turns + 1):
            began = time.perf_counter()
            for _ in ch.generate(session, PROMPT, max_tokens=count, temperature=0.7, seed=turn):
                pass
            own.append(time.perf_counter() - began)
            served.append(page.apply(written, (address, loaded.name, turn, count)))
    own, served = own[1:], served[1:]  # the first turn warms up
    ratio = statistics.median(b / a for a, b in zip(own, served, strict=True))
    return [
        ["ch.generate, tokens a second", f"{count / statistics.median(own):.0f}"],
        ["studio, tokens a second", f"{count / statistics.median(served):.0f}"],
        ["time of the studio / of generate", f"{ratio:.2f}"],
    ]


def trace_of(tokens: int) -> ch.Seen:
    torch.manual_seed(tokens)
    query, key = torch.randn(1, 1, tokens, 64), torch.randn(1, 1, tokens, 64)
    facts = LayerFacts("L0", "", "self", True, 1, 1, 64, 64, 0.125, None, torch.float32, "")
    low = torch.zeros(1, tokens, dtype=torch.long)
    mask = RowMask(low, torch.arange(1, tokens + 1)[None])
    sums = logsums(query[0, 0], key[0, 0])[None, None]
    return ch.Seen([LayerRecord(facts, query, key, sums, pieces=[RowRules(tokens, tokens, mask)])])


def logsums(query: torch.Tensor, key: torch.Tensor, rows: int = 256) -> torch.Tensor:
    """Of causal attention, some rows at a time."""
    parts = []
    for start in range(0, len(query), rows):
        stop = min(start + rows, len(query))
        scores = query[start:stop] @ key[:stop].T / 8
        future = torch.ones(stop - start, stop - start, dtype=torch.bool).triu(1)
        scores[:, start:].masked_fill_(future, -torch.inf)
        parts.append(scores.logsumexp(1))
    return torch.cat(parts)


def tiles(lengths: tuple[int, ...] = LENGTHS) -> list[list[str]]:
    rows = []
    for tokens in lengths:
        with ch.studio(trace_of(tokens), port=0) as studio:
            line = Line(studio)
            asked = {"pane": 0, "model": "trace", "text": "", "head": "L0H0"}
            for when in ("still counted", "counted"):
                number = line.send("map", **asked)
                info = line.until("mapped")["info"]
                while when == "counted" and "strongest" not in line.until("mapping"):
                    pass
                found = [
                    took
                    for level in range(info["levels"])
                    for took in tile_times(line, number, level, -(-tokens // (256 << level)))
                ]
                rows.append(
                    [
                        f"{tokens:,} tokens, {when}: a tile, median; longest",
                        f"{statistics.median(found) * 1e3:.0f}; {max(found) * 1e3:.0f} ms",
                    ]
                )
    return rows


def tile_times(line: Line, number: int, level: int, side: int) -> list[float]:
    found = []
    for place in {(level, side - 1, 0), (level, side // 2, side // 3)}:
        began = time.perf_counter()
        line.send("tile", pane=0, map=number, place=list(place))
        line.until("tile", "gone")
        found.append(time.perf_counter() - began)
    return found


def memory(loaded: ch.Loaded, studio: Studio, looks: int = 1000) -> list[list[str]]:
    line, text = Line(studio), words(30)
    measured = []
    for turn in range(looks):
        line.send("look", pane=0, model=loaded.name, text=f"{text} {turn}")
        line.until("look", "error")
        if turn in (20, looks - 1):
            gc.collect()
            measured.append(resident())
    return [[f"memory after 21 looks; after {looks:,}", f"{measured[0]:.0f}; {measured[1]:.0f} MB"]]


_open: list[Line] = []  # of the process that plays the pages


def looks_at_once(address: SimpleNamespace, model: str, count: int) -> float:
    """Seconds until each of so many pages has its look; they stay open."""
    lines = [Line(address) for _ in range(count)]
    _open.extend(lines)
    began = time.perf_counter()
    for number, line in enumerate(lines):
        line.send("look", pane=0, model=model, text=f"{words(12)} {number}")
    for line in lines:
        line.until("look")
    return time.perf_counter() - began


def clients(loaded: ch.Loaded, studio: Studio, count: int) -> list[list[str]]:
    """The pages are another process: the memory is the server's."""
    first = Line(studio)
    first.send("look", pane=0, model=loaded.name, text="The model is warm now.")
    first.until("look")
    before, address = resident(), SimpleNamespace(url=studio.url, port=studio.port)
    with multiprocessing.get_context("spawn").Pool(1) as pages:
        took = pages.apply(looks_at_once, (address, loaded.name, count))
        more = resident() - before
    return [
        [f"{count} clients, a look each: all served after", f"{took:.1f} s"],
        [f"{count} clients: memory of the server more", f"{more:.0f} MB"],
    ]


class Rows(list[list[str]]):
    """Rows of the table; each is printed when it is there, as all of them take minutes."""

    def __iadd__(self, more: Iterable[list[str]]) -> Rows:  # type: ignore[override, misc]
        for row in more:
            print(": ".join(row), flush=True)
            self.append(row)
        return self


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="typing,writing,tiles,memory,clients")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--keys", type=int, default=9)
    parser.add_argument("--looks", type=int, default=1000)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    for part in options.only.split(","):
        rows = Rows()
        if part == "tiles":
            rows += tiles(tuple(map(int, options.lengths.split(","))))
        else:
            loaded = ch.load("smollm2")
            with ch.studio(loaded, port=0) as studio:
                if part == "typing":
                    rows += typing(studio, options.keys)
                if part == "writing":
                    rows += writing(loaded, studio, options.turns)
                if part == "memory":
                    rows += memory(loaded, studio, options.looks)
                if part == "clients":
                    rows += clients(loaded, studio, options.clients)
        text = f"{machine()}\n\n{table(['what', 'measured'], rows)}"
        print(text)
        if options.publish:
            publish(f"studio {part}", text)


if __name__ == "__main__":
    main()
