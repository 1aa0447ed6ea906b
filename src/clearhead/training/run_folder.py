"""The folder of a run: a model that anybody can open, and beside it what the run has to remember.

::

    config.json, model.safetensors, tokenizer …   the model as of the last checkpoint
    training/run.json                             the plan of the run
    training/texts.jsonl, validation.jsonl        texts that were given as strings, not as files
    training/log.jsonl                            one line for each step and each validation
    training/step-*.safetensors                   checkpoints
    training/curve.svg                            the losses as a picture
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.checkpoints.save import save
from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import read_json, write_json
from clearhead.files.text_file import write_text
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.checkpoint import Checkpoints


class RunFolder:
    """The files of a run; only the first process of a run writes."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.inside = self.folder / "training"
        self.checkpoints = Checkpoints(self.inside)

    @property
    def begun(self) -> bool:
        """True if a run was begun here."""
        return (self.inside / "run.json").exists()

    def begin(self, plan: dict[str, Any], texts: Mapping[str, str] | None = None) -> None:
        """Write the plan, after the files that it refers to; the folder must be new or empty."""
        self.check_new()
        for name, content in (texts or {}).items():
            self._write(lambda name=name, content=content: write_text(self.folder / name, content))
        self._write(lambda: write_json(self.inside / "run.json", plan))

    def check_new(self) -> None:
        """Refuse a folder that holds anything."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            hint = "continue the run in it with --resume (resume=True), or choose another folder."
            raise InputError(
                f"{self.folder} is not empty; a run begins in a folder of its own.",
                hint=hint if self.begun else "choose a folder that does not exist yet.",
            )

    def plan(self) -> dict[str, Any]:
        """The plan that the run began with."""
        if not self.begun:
            raise InputError(
                f"there is no run to resume in {self.folder}.",
                hint="begin one without --resume (resume=True).",
            )
        return read_json(self.inside / "run.json")

    def publish(
        self, config: ModelConfig, weights: dict[str, Tensor], tokenizer: Tokenizer | None
    ) -> None:
        """Put a model with these weights where ``load`` finds it, file by whole file."""
        with torch.device("meta"):
            model = build(config)
        model.load_state_dict(weights, strict=False, assign=True)
        ready = save(model, self.inside / "model", tokenizer)
        for path in sorted(ready.iterdir(), key=lambda path: path.name == "config.json"):
            self._write(lambda path=path: path.replace(self.folder / path.name))
        shutil.rmtree(ready, ignore_errors=True)

    def log(self, line: dict[str, Any]) -> None:
        """Add a line to the log."""

        def append() -> None:
            with (self.inside / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

        self._write(append)

    def lines(self) -> list[dict[str, Any]]:
        """The log's lines; one that a crash cut off is left out."""
        path = self.inside / "log.jsonl"
        if not path.exists():
            return []
        found = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def rewind(self, step: int) -> None:
        """Cut the log after a step, and remove what a killed process left half-written."""
        for left in self.inside.glob(".*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        kept = [json.dumps(line) + "\n" for line in self.lines() if line["step"] <= step]
        self._write(lambda: write_text(self.inside / "log.jsonl", "".join(kept)))

    def _write(self, work: Any) -> None:
        try:
            work()
        except OSError as error:
            raise CheckpointError(
                f"cannot write into {self.folder}: {error.strerror or error}.",
                hint="is the disk full or write-protected? The last checkpoint is whole: free some "
                "space and start again with --resume (resume=True).",
            ) from error
