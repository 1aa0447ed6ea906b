"""The folder of a run: a model that anybody can open, and beside it what the run has to remember.

::

    config.json, model.safetensors, tokenizer …   the model as of the last checkpoint
    checkpoints/step-*/                           models that are kept for good (keep_every)
    training/run.json                             the record: plan, model, checksums
    training/tokenizer/                           the tokenizer that the run began with
    training/base/                                the model that adapters are for
    training/tokens/                              the texts as tokens: learned, held out, facts.json
    training/texts.jsonl, validation.jsonl        pairs, chats, and texts that were given as strings
    training/log.jsonl                            one line for each step and each validation
    training/step-*.safetensors                   checkpoints
    training/lock, process.json                   the lock, and who holds it
    training/curve.svg                            the losses as a picture
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.checkpoints.adapters.adapter import Adapter
from clearhead.checkpoints.adapters.adapter_folder import write_adapter
from clearhead.checkpoints.adapters.base import CONFIG, KEPT, kept_base, model_files
from clearhead.checkpoints.save import save
from clearhead.errors import CheckpointError, InputError
from clearhead.files.text_file import write_text
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.text.folder import load_tokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.plan import Plan
from clearhead.training.run_folder.checkpoint import Checkpoints
from clearhead.training.run_folder.checksum import DamagedError, checksum_of_file
from clearhead.training.run_folder.lock import HOLDER, LOCK, RunLock
from clearhead.training.run_folder.log import RunLog
from clearhead.training.run_folder.record import GONE, RunRecord

TOKENIZER, TOKENS, BASE = "tokenizer", "tokens", KEPT.name
KEPT_MODELS = "checkpoints"
BEGINNING = {  # before run.json
    LOCK, HOLDER, TOKENIZER, TOKENS, BASE, "texts.jsonl", "validation.jsonl",
}  # fmt: skip
FULL_AT_FIRST = (
    "is the disk full or write-protected, or a part of the path a file? Nothing has begun: free "
    "some space, or choose another folder."
)
FULL_LATER = (
    "is the disk full or write-protected? The last checkpoint is whole: free some space and start "
    "again with --resume (resume=True)."
)


class RunFolder:
    """The files of a run; only the first process of a run writes."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.inside = self.folder / "training"
        self.checkpoints = Checkpoints(self.inside)
        self.log = RunLog(self.inside / "log.jsonl")
        self._lock = RunLock(self.inside)

    @property
    def begun(self) -> bool:
        """True if a run was begun here."""
        return (self.inside / "run.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process out; :class:`~.lock.InUseError` if one is in already."""
        with ExitStack() as stack:
            with self.explained():
                stack.enter_context(self._lock.held())
            yield

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Hold the lock while a run is prepared; if it does not begin, nothing is left of it."""
        made = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        self.check_new()
        with self.locked():
            try:
                yield
            finally:
                if not self.begun:
                    shutil.rmtree(self.inside, ignore_errors=True)
                    for path in made:
                        with suppress(OSError):  # somebody else has put something there
                            path.rmdir()

    def new_tokens(self) -> Path:
        """An empty folder for the tokens of a run that is about to begin."""
        with self.explained():
            shutil.rmtree(self.inside / TOKENS, ignore_errors=True)
            (self.inside / TOKENS).mkdir(parents=True)
        return self.inside / TOKENS

    def tokens(self) -> Path | None:
        """The folder of the run's tokens, every byte of it checked; None if it keeps none."""
        listed = [name for name in self.record().files if name.startswith(TOKENS + "/")]
        for name in listed:
            self.checked(name)
        return self.inside / TOKENS if listed else None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the disk, inside, into one that says what to do."""
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"cannot write into {self.folder}: {error.strerror or error}.",
                hint=FULL_LATER if self.begun else FULL_AT_FIRST,
            ) from error

    def begin(
        self, plan: Plan, config: ModelConfig, tokenizer: Tokenizer | None,
        texts: Mapping[str, str] | None = None, base: Path | None = None,
    ) -> None:  # fmt: skip
        """Write the record, after the files that it refers to; the folder must be new or empty.

        ``base`` is the model that adapters are for: the run keeps its files.
        """
        self.check_new()
        with self.explained():
            for name in (TOKENIZER, BASE):
                shutil.rmtree(self.inside / name, ignore_errors=True)
            for name, content in (texts or {}).items():
                write_text(self.inside / name, content)
            if tokenizer is not None:
                (self.inside / TOKENIZER).mkdir(parents=True)
                tokenizer.save(self.inside / TOKENIZER)
            kept = [*self._files_in(TOKENIZER), *self._files_in(TOKENS), *self._keep_base(base)]
            written = [*(texts or {}), *kept]
            files = {name: checksum_of_file(self.inside / name) for name in written}
            record = RunRecord(plan=plan, model=json.loads(config.to_json()), files=files)
            record.write(self.inside / "run.json")

    def _keep_base(self, base: Path | None) -> list[str]:
        """Keep the files of a model: under a second name on the same disk, else as copies."""
        files = [] if base is None else model_files(base)
        root = Path() if base is None else base if base.is_dir() else base.parent
        names = [f"{BASE}/{file.relative_to(root)}" for file in files]
        for file, name in zip(files, names, strict=True):
            target = self.inside / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(file.resolve())
            except OSError:  # another disk, or one without links
                shutil.copyfile(file, target)
        return names

    def base(self) -> Path:
        """The model that the run's adapters are for, after its checksums were compared."""
        for name in self.record().files:
            if name.startswith(BASE + "/"):
                self.checked(name)
        kept = kept_base(self.folder)
        if kept is None:
            raise DamagedError(f"{self.inside / BASE} is gone.", hint=GONE)
        return kept

    def check_new(self) -> None:
        """Refuse a folder that holds anything but a beginning that was cut off."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(
                f"{self.folder} is a file; a run begins in a folder of its own.",
                hint="choose a folder that does not exist yet.",
            )
        if self.folder.exists() and self._holds_something():
            hint = "continue the run in it with --resume (resume=True), or choose another folder."
            raise InputError(
                f"{self.folder} is not empty; a run begins in a folder of its own.",
                hint=hint if self.begun else "choose a folder that does not exist yet.",
            )

    def record(self) -> RunRecord:
        """The record of the run that was begun here."""
        if not self.begun:
            raise InputError(
                f"there is no run to resume in {self.folder}.",
                hint="begin one without --resume (resume=True).",
            )
        return RunRecord.read(self.inside / "run.json")

    def amend(self, settings: dict[str, Any]) -> None:
        """Change the settings in the record, after a run was made longer."""
        record = self.record()
        if record.plan.settings != settings:
            with self.explained():
                plan = replace(record.plan, settings=settings)
                replace(record, plan=plan).write(self.inside / "run.json")

    def checked(self, name: str) -> Path:
        """The path of a file that the record refers to, after its checksum was compared."""
        path, wanted = self.inside / name, self.record().files.get(name)
        if wanted is None:
            raise CheckpointError(f"{self.inside / 'run.json'} does not list {name}.", hint=GONE)
        if checksum_of_file(path) != wanted:
            raise DamagedError(
                f"{path} is damaged or was changed: its checksum is not the one in run.json.",
                hint=GONE,
            )
        return path

    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the run began with."""
        listed = [name for name in self.record().files if name.startswith(TOKENIZER + "/")]
        for name in listed:
            self.checked(name)
        if sorted(listed) != self._files_in(TOKENIZER):
            raise DamagedError(
                f"{self.inside / TOKENIZER} does not hold the files that run.json lists.", hint=GONE
            )
        return load_tokenizer(self.inside / TOKENIZER)

    def publish(
        self, config: ModelConfig, weights: dict[str, Tensor], tokenizer: Tokenizer | None
    ) -> None:
        """Put a model with these weights where ``load`` finds it, file by whole file."""
        with torch.device("meta"):
            model = build(config)
        model.load_state_dict(weights, strict=False, assign=True)
        ready = save(model, self.inside / "model", tokenizer)
        with self.explained():
            described = ready / "config.json"
            for path in sorted(ready.rglob("*"), key=lambda path: path == described):
                if path.is_file():  # 1_Pooling/config.json of sentence encoders is in a folder
                    target = self.folder / path.relative_to(ready)
                    target.parent.mkdir(exist_ok=True)
                    path.replace(target)
        shutil.rmtree(ready, ignore_errors=True)

    def publish_adapter(
        self, config: ModelConfig, adapter: Adapter, tokenizer: Tokenizer | None
    ) -> None:
        """Put an adapter where ``load`` and PEFT find it, file by whole file."""
        ready = self.inside / ".adapter"
        with self.explained():
            shutil.rmtree(ready, ignore_errors=True)
            ready.mkdir(parents=True)
            write_adapter(ready, adapter, config)
            if tokenizer is not None:
                tokenizer.save(ready)
            for path in sorted(ready.iterdir(), key=lambda path: path.name == CONFIG):
                path.replace(self.folder / path.name)
        shutil.rmtree(ready, ignore_errors=True)

    def keep(self, step: int) -> Path:
        """Keep the model that was just published in a folder of its own; it appears at once."""
        ready, kept = self.inside / ".kept", self.folder / KEPT_MODELS / f"step-{step:08}"
        with self.explained():
            for old in (ready, kept):  # of a run that was killed, and does these steps again
                shutil.rmtree(old, ignore_errors=True)
            ready.mkdir()
            kept.parent.mkdir(exist_ok=True)
            for path in self.folder.iterdir():
                if path.is_file() and not path.name.startswith("."):
                    shutil.copyfile(path, ready / path.name)
            ready.replace(kept)
        return kept

    def sweep(self) -> None:
        """Remove what a killed process left half-written."""
        for left in self.inside.glob(".*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

    def _holds_something(self) -> bool:
        if any(path.name != "training" for path in self.folder.iterdir()):
            return True
        if not self.inside.is_dir():
            return self.inside.exists()
        names = (path.name for path in self.inside.iterdir())
        return any(name not in BEGINNING and not name.startswith(".") for name in names)

    def _files_in(self, name: str) -> list[str]:
        folder = self.inside / name
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        return [f"{name}/{path.name}" for path in paths]
