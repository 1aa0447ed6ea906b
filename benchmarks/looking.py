"""Pages of attention: ``python benchmarks/looking.py [--lengths 64,256] [--publish]``.

The same SmolLM2 and the same text (out of ``pydoc_data.topics``, which every Python carries), all
layers and heads: clearhead's page against BertViz' ``head_view`` and ``model_view`` (in an
environment of its own, made on first use). Seconds are from the ids to the finished file, the
forward included, the model loaded before, after a warm-up; each measurement is a process of its
own, and memory is its highest above what it held with the model loaded. Lengths may be measured
one after the other: the table holds the latest of each (build/looking.json). A page is shown when
Chromium has drawn its first picture (clearhead) or fired its load event (BertViz, whose pictures
are drawn by scripts that it fetches from the network). ``--pages`` measures the course and the
pages of one sentence alone, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import pydoc_data.topics
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import (
    ROOT,
    machine,
    megabytes,
    peak_memory,
    peer_environment,
    publish,
    seconds,
    table,
)

BERTVIZ_FOLDER = ROOT / "build" / "bench-bertviz"
RESULTS = ROOT / "build" / "looking.json"
LENGTHS = (64, 256, 512, 1024, 2048)
LONGEST_HEAD_VIEW = 512  # 2 GB of HTML already, and four times that for each doubling
LONGEST_MODEL_VIEW = 256
LAYER = "L16"  # of the view of one layer
MOST_SECONDS, MOST_BYTES = 170, 20_000_000_000
NOT_RUN = "not run"
SENTENCE = "The kids were scared of the lions, so they left right away."
CAPITAL = "The capital of France is"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip

Measured = dict[str, float]


def ids_and_tokens(tokenizer: Any, length: int) -> tuple[list[int], list[str]]:
    text = "\n\n".join(pydoc_data.topics.topics.values())[: 16 * length]
    tokens = tokenizer.tokens(text)[:length]
    return [token.id for token in tokens], [token.text for token in tokens]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def ours(path: Path, length: int, layer: str, out: Path) -> Measured:
    """Runs alone: clearhead's page."""
    import clearhead as ch
    from clearhead.explain.look import Look
    from clearhead.trace import watch
    from clearhead.views.page.html import html_page

    loaded: Any = ch.load(path)

    def page(ids: list[int]) -> str:
        with watch(loaded, layers=layer or None, values=True) as seen:
            loaded.model(torch.tensor([ids]), last_only=True)
        return html_page(Look(seen))

    ids, _ = ids_and_tokens(loaded.tokenizer, length)
    with torch.no_grad():
        page(ids[:16])
        before, start = _resident(), time.perf_counter()
        out.write_text(page(ids), encoding="utf-8")
    return {"seconds": time.perf_counter() - start, "peak": peak_memory() - before}


def bertviz(folder: Path, view: str, ids: list[int], tokens: list[str], out: Path) -> Measured:
    """Runs alone, in BertViz' environment."""
    import importlib

    transformers: Any = importlib.import_module("transformers")
    draw: Any = getattr(importlib.import_module("bertviz"), view)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=torch.float32, attn_implementation="eager"
    ).eval()

    def page(count: int) -> str:
        result = model(torch.tensor([ids[:count]]), output_attentions=True, use_cache=False)
        return str(draw(result.attentions, tokens[:count], html_action="return").data)

    with torch.no_grad():
        page(8)
        before, start = _resident(), time.perf_counter()
        out.write_text(page(len(ids)), encoding="utf-8")
    return {"seconds": time.perf_counter() - start, "peak": peak_memory() - before}


def bertviz_environment() -> Path:
    """Python with BertViz."""
    return peer_environment("bertviz", ["bertviz", "transformers", "ipython"])


def bertviz_model(path: Path) -> Path:
    """SmolLM2 as a folder that transformers reads at once."""
    import clearhead as ch

    folder = BERTVIZ_FOLDER / "smollm2"
    if not folder.exists():
        loaded = ch.load(path)
        ch.save(loaded.model, folder, loaded.tokenizer)
    return folder


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def process(python: str | Path, arguments: list[str]) -> Measured | str:
    """One measurement in a process of its own; a reason where it does not end well."""
    env = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    try:
        done = subprocess.run(
            [str(python), __file__, *arguments], capture_output=True, text=True, check=False,
            env=env, timeout=MOST_SECONDS, preexec_fn=_limited,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"over {MOST_SECONDS} s"
    if done.returncode != 0:
        print(done.stderr[-1500:], file=sys.stderr)
        return "failed"
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def shown(page: Path, selector: str | None) -> float | str:
    """Seconds until Chromium shows the page; ``selector`` appears when it does."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        try:
            tab = browser.new_page()
            tab.set_default_timeout(60_000)
            start = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="load" if selector is None else "commit")
            if selector is not None:
                tab.wait_for_selector(selector)
            return time.perf_counter() - start
        except Error as error:
            return "crashes" if "crash" in str(error).lower() else "over 60 s"
        finally:
            browser.close()


HEADER = ["tokens", "", "text to file", "file", "shown by Chromium", "peak memory"]
PAGES_HEADER = ["page of", "command", "text to file", "file", "shown by Chromium"]


def row(
    length: int, name: str, found: Measured | str, page: Path, selector: str | None
) -> list[str]:
    if isinstance(found, str):
        return [f"{length:,}", name, found, "", "", ""]
    time_shown = shown(page, selector)
    said = time_shown if isinstance(time_shown, str) else seconds(time_shown)
    size = page.stat().st_size
    page.unlink()
    return [
        f"{length:,}", name, seconds(found["seconds"]),
        megabytes(size) if size >= 1e7 else f"{size / 1e6:.1f} MB", said, megabytes(found["peak"]),
    ]  # fmt: skip


def compare(lengths: list[int], peers: bool) -> list[list[str]]:
    from clearhead.checkpoints.store.model_store import ModelStore
    from clearhead.text.folder import load_tokenizer

    path = ModelStore().pull("smollm2")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        for length in lengths:
            for name, layer in (("clearhead", ""), (f"clearhead, {LAYER} alone", LAYER)):
                if layer and length < 1024:
                    continue
                arguments = ["--ours", str(length), "--layer", layer, "--out", str(page)]
                found = process(sys.executable, [*arguments, "--folder", str(path)])
                rows.append(row(length, name, found, page, "[data-ready]"))
                print(table(HEADER, rows[-1:]).splitlines()[-1], flush=True)
            if not peers:
                continue
            python, model = bertviz_environment(), bertviz_model(path)
            ids, tokens = ids_and_tokens(load_tokenizer(model), length)
            given = Path(folder) / "ids.json"
            given.write_text(json.dumps([ids, tokens]))
            views = {"head_view": LONGEST_HEAD_VIEW, "model_view": LONGEST_MODEL_VIEW}
            for view, longest in views.items():
                arguments = ["--bertviz", view, "--ids", str(given), "--out", str(page)]
                measured: Measured | str = NOT_RUN
                if length <= longest:
                    measured = process(python, [*arguments, "--folder", str(model)])
                rows.append(row(length, f"BertViz {view}", measured, page, None))
                print(table(HEADER, rows[-1:]).splitlines()[-1], flush=True)
    return rows


def page_row(name: str, command: str, make: Callable[[], str], selector: str) -> list[str]:
    """One page: seconds until its text is there, its size, and until Chromium shows it."""
    start = time.perf_counter()
    html = make()
    took = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        size, time_shown = page.stat().st_size, shown(page, selector)
    said = time_shown if isinstance(time_shown, str) else seconds(time_shown)
    row = [name, command, seconds(took), f"{size / 1e6:.2f} MB", said]
    print(table(PAGES_HEADER, [row]).splitlines()[-1], flush=True)
    return row


def page_rows(heads: bool) -> list[list[str]]:
    """The course, and the pages of one sentence; ``heads``: that of the roles, too (minutes)."""
    import clearhead as ch
    from clearhead.views.course.html import course_page

    loaded = ch.load("smollm2")
    other = SENTENCE.replace("kids", "#").replace("lions", "kids").replace("#", "lions")
    ch.look(loaded, SENTENCE)  # a warm-up
    look = partial(ch.look, loaded, word="they", head="L16H5")
    drawn = "[data-static][data-ready]"
    pages: list[tuple[str, str, Callable[[], str], str]] = [
        ("the course", "clearhead learn", course_page, "figure[data-ready]"),
        ("one sentence", "clearhead look", lambda: look(SENTENCE).html(), "[data-ready]"),
        ("one sentence", "clearhead steps", lambda: look(SENTENCE).steps().html(), drawn),
        ("two sentences", "clearhead diff",
         lambda: ch.diff(ch.look(loaded, SENTENCE), ch.look(loaded, other)).html(), drawn),
        ("a prediction", "clearhead why",
         lambda: ch.why(loaded, CAPITAL, " Paris", " London").html(), drawn),
    ]  # fmt: skip
    if heads:
        pages.append(("all heads", "clearhead heads", lambda: ch.roles(loaded).html(), drawn))
    return [page_row(*page) for page in pages]


def remembered(rows: list[list[str]]) -> list[list[str]]:
    """These rows, and those of other lengths that were measured before."""
    known: dict[str, list[list[str]]] = {}
    if RESULTS.exists():
        known = json.loads(RESULTS.read_text())
    known |= {length: [row for row in rows if row[0] == length] for length in {r[0] for r in rows}}
    RESULTS.write_text(json.dumps(known))
    order = sorted(
        known, key=lambda length: int(length.replace(",", "")) if length[0].isdigit() else 10**9
    )
    return [row for length in order for row in known[length]]


def said(rows: list[list[str]]) -> str:
    note = (
        "BertViz was not run where it says so: its memory grows fourfold with each doubling (256 "
        "and 512 above), and `model_view` writes the same numbers as `head_view`. Its pages fetch "
        "their scripts from the network; measured is the load event. Each figure is of a "
        "single run; peak memory may include what loading the model took."
    )
    return f"{table(HEADER, rows)}\n\n{note}"


COMMANDS = {
    "looking": "python benchmarks/looking.py",
    "looking, pages": "python benchmarks/looking.py --pages --heads",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--alone", action="store_true", help="without BertViz")
    parser.add_argument(
        "--pages", action="store_true", help="only the course and pages of a sentence (1 minute)"
    )
    parser.add_argument("--heads", action="store_true", help="the page of roles, too (4 minutes)")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    for name in ("ours", "layer", "bertviz", "ids", "out", "folder"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours:
        length = int(given.ours)
        print(json.dumps(ours(Path(given.folder), length, given.layer, Path(given.out))))
        return
    if given.bertviz:
        ids, tokens = json.loads(Path(given.ids).read_text())
        found = bertviz(Path(given.folder), given.bertviz, ids, tokens, Path(given.out))
        print(json.dumps(found))
        return
    if given.pages:
        name, text = "looking, pages", table(PAGES_HEADER, page_rows(given.heads))
    else:
        lengths = [int(length) for length in given.lengths.split(",")]
        name, text = "looking", said(remembered(compare(lengths, not given.alone)))
    about = f"`{COMMANDS[name]}` on {machine()}. SmolLM2, 30 layers of 9 heads."
    print(f"{about}\n\n{text}")
    if given.publish:
        publish(name, f"{about}\n\n{text}")


if __name__ == "__main__":
    main()
