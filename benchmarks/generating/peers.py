"""llama.cpp and ik_llama.cpp as contestants, each in a process and an environment of its own.

The environments (wheels ``xllamacpp`` and ``ik-llama-cpp-python``) are made below build/ on first
use. A peer sleeps while the others have their turn. llama.cpp's figures are its own timings; those
of ik_llama.cpp are the time of its ``llama_decode`` calls.
"""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from generating.contestants import TOKENS

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"


class Peer:
    """A process that answers requests, one JSON line each."""

    name, package, program = "", "", ""

    def __init__(self, path: Path, *, context: int, rows: int = 1, threads: int = 0) -> None:
        numbers = (threads or torch.get_num_threads(), context, rows)
        python = environment(f"bench-{self.name}", self.package)
        self.process = subprocess.Popen(
            [python, str(HERE / self.program), str(path), *map(str, numbers), *self.options()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.peak = self.resident = 0
        self._answer()

    def options(self) -> list[str]:
        return []

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        found = self._answer()
        self.peak, self.resident = found["peak"], found["resident"]
        return found

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SystemExit(f"{self.package} ended early")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Llama(Peer):
    """llama.cpp."""

    name, package, program = "llama", "xllamacpp", "llama.py"

    def decode(self, rows: list[list[int]]) -> Callable[[], float]:
        def work() -> float:
            found = self.ask(prompts=rows, tokens=TOKENS, reuse=True)["timings"]
            return max(float(each["predicted_per_token_ms"]) for each in found) / 1e3

        return work

    def prefill(self, ids: list[int]) -> Callable[[], float]:
        def work() -> float:
            found = self.ask(prompts=[ids], tokens=1, reuse=False)["timings"]
            return float(found[0]["prompt_ms"]) / 1e3

        return work


class IkLlama(Peer):
    """ik_llama.cpp, with its flash attention, which is the faster way here."""

    name, package, program = "ik", "ik-llama-cpp-python", "ik.py"

    def options(self) -> list[str]:
        return ["flash"]

    def decode(self, rows: list[list[int]]) -> Callable[[], float]:
        return lambda: float(self.ask(prompts=rows, tokens=TOKENS, reuse=True)["seconds"])

    def prefill(self, ids: list[int]) -> Callable[[], float]:
        return lambda: float(self.ask(prompts=[ids], tokens=1, reuse=False)["seconds"])

    def logits(self, ids: list[int], target: Path) -> torch.Tensor:
        """The logits after every token of a text."""
        self.ask(prompts=[ids], tokens=0, logits=str(target))
        found = torch.frombuffer(bytearray(target.read_bytes()), dtype=torch.float32)
        return found.view(len(ids), -1)


class IkLlamaOfRows(IkLlama):
    """The same for several rows: its flash attention stops at an assertion of its own there."""

    def options(self) -> list[str]:
        return []


def environment(name: str, package: str) -> str:
    """The Python of a peer's environment, made if need be."""
    folder = BUILD / name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"setting up {package} in build/{name} …", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True)
    return str(python)
