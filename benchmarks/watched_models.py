"""Watched models: ``python benchmarks/watched_models.py [--only TEXT] [--publish]``.

Tiny models with random weights of every family that is easily made, from packages that people use,
each with each of its attention implementations. A line of the table says how many of the attention
calls that ran were seen, the largest error of any weight, whether the outputs were the same bits,
and what ``verify`` says; or the reason why something was not seen. What ran, and with which
weights, is read off torch's operations (``watched/events.py``), and compared with the weights that
a package itself reports, where it does (eager attention of ``transformers``).

The packages go into an environment of their own below ``build/``, made on first use; ``--python``
takes another one. torchvision has no build for torch without CUDA at this version: two of its
operators are declared, which no model here uses, so that packages which want it can be imported.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "watch.md"
BEGIN, END = "<!-- watched models -->", "<!-- /watched models -->"
WITH_WHAT_THEY_NEED = (
    "transformers", "accelerate", "einops", "einx", "loguru", "ftfy", "regex", "sentencepiece",
    "pillow", "psutil", "requests",
)  # fmt: skip
ALONE = (
    "torchvision==0.28.0", "timm", "diffusers", "x-transformers", "torch-einops-utils",
    "einops-exts", "hyper-connections", "open_clip_torch", "vit-pytorch", "importlib_metadata",
    "zipp",
)  # fmt: skip
SHOWN = ("transformers", "timm", "diffusers", "x-transformers", "open_clip_torch", "vit-pytorch")


def environment() -> Path:
    """Python with the packages of the table."""
    folder = ROOT / "build" / "bench-watched-models"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing packages into {folder.relative_to(ROOT)} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        limits = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, *limits, str(ROOT), *WITH_WHAT_THEY_NEED], check=True)
        subprocess.run([*pip, "--no-deps", *ALONE], check=True)
        (folder / "ready").touch()
    return python


def lines(only: str) -> Iterator[object]:
    """Every line of the table, as it is found."""
    from watched import library_models, torch_models, transformers_models
    from watched.judgement import judged

    for module in (torch_models, transformers_models, library_models):
        for subject in module.subjects():
            if only not in str(subject):
                continue
            try:
                yield judged(subject)
            except Exception as error:
                text = " ".join(str(error).split())[:160]
                if "does not support an attention implementation" not in text:
                    print(f"not made: {subject}: {type(error).__name__}: {text}", file=sys.stderr)


def prepare() -> None:
    """Packages keep their advice to themselves, and torchvision can be imported."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in ("nms", "qnms"):
        torch.library.define(
            f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )
    import transformers

    transformers.logging.set_verbosity_error()


def table(found: Sequence[object]) -> str:
    """The lines, and what they come to."""
    from watched.judgement import Line

    rows = ["| | | | seen | largest error | same bits | verdict |", "|---|---|---|---|---|---|---|"]
    for one in found:
        assert isinstance(one, Line)
        error = "" if one.error is None else f"{one.error:.0e}"
        same = "" if one.identical is None else ("yes" if one.identical else "**no**")
        names = f"| {one.subject.package} | {one.subject.family} | {one.subject.implementation} "
        seen = f"{one.seen} of {one.ran}"
        rows.append(f"{names}| {seen} | {error} | {same} | {one.verdict.replace('|', '/')} |")
    return "\n".join([summary(found), "", *rows])


def summary(found: Sequence[object]) -> str:
    """One paragraph: how many lines, and of which kind."""
    from watched.judgement import Line

    every = [one for one in found if isinstance(one, Line)]
    kinds = Counter(one.verdict.partition(":")[0] for one in every)
    errors = [one.error for one in every if one.error is not None]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in SHOWN)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    calls = f"{sum(one.seen for one in every):,} of {sum(one.ran for one in every):,}"
    reported = sum(one.reported for one in every)
    return (
        f"{len(every)} pairs of a family and an implementation: {counted}. Of the attention calls "
        f"{calls} were seen; the largest error of a weight is {max(errors, default=0):.0e}. In "
        f"{reported} pairs the package reports weights itself, and they agree. "
        f"torch {torch.__version__}, {versions}; float32, tiny sizes, random weights."
    )


def publish(text: str) -> None:
    """Put the table between its marks in docs/watch.md."""
    page = PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"docs/watch.md has no section {BEGIN} … {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="lines whose package, family … contain this")
    parser.add_argument("--publish", action="store_true", help="write the table to docs/watch.md")
    parser.add_argument("--python", type=Path, help="of an environment that has the packages")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.here:
        python = given.python or environment()
        paths = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [str(python), __file__, "--here", *sys.argv[1:]]
        return subprocess.run(command, env=paths, check=False).returncode
    prepare()
    found, began = [], time.monotonic()
    for one in lines(given.only):
        found.append(one)
        print(f"\r{len(found)} lines, {time.monotonic() - began:.0f} s ", end="", file=sys.stderr)
    print(file=sys.stderr)
    text = table(found)
    if given.publish:
        publish(text)
    else:
        print(text)
    bad = [one for one in found if not one.sound]  # type: ignore[attr-defined]
    print(f"{len(bad)} of {len(found)} lines are at fault", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
