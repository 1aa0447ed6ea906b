"""A run from beginning to end: the public function ``train``. Texts in, events out.

The command ``clearhead train`` is this function with a progress bar.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import InputError
from clearhead.training.data.given import check_train
from clearhead.training.data.source import Content, Given, Source, source_of, to_lines
from clearhead.training.events import Event
from clearhead.training.loop import train_task
from clearhead.training.plan import STORED, Plan, check_fields, check_same
from clearhead.training.prepare import prepare
from clearhead.training.processes import Processes, device_of, together
from clearhead.training.run_folder import RunFolder

DEFAULT_MINUTES = 1.5
PAIR_SETTINGS = {"label_smoothing": 0.1}  # as in Vaswani et al. 2017, section 5.4


def train(
    texts: Given | None = None,
    *,
    out: str | Path = "trained",
    pairs: bool = False,
    validation: Given | None = None,
    size: str = "tiny",
    tokenizer: str | Path = "bpe",
    vocabulary: int | None = None,
    start_from: str | Path | None = None,
    steps: int | None = None,
    minutes: int | float | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    resume: bool = False,
    shard: bool = False,
    model: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Generator[Event, None, None]:
    """Train a model on texts or pairs of texts, step by step, and save it in a folder.

    Nothing is trained before the first event is asked for. A program may stop at any event: the
    checkpoints stay, and ``resume`` continues to the same numbers as if it had never stopped.

    Args:
        texts: a path (``str`` or ``Path``) or a list of ``Path``: files and folders. A list of
            strings: the texts themselves, one document each. None: Python's own reference text.
        out: the folder of the run and of its result; it must be new or empty.
        pairs: train an encoder-decoder on pairs. ``texts`` is then a list of
            ``(source, target)`` strings, two ``Path`` of files that belong together line by line,
            or one file with a tab in each line.
        validation: texts to validate on, given as ``texts`` are; else a tenth is held out.
        size: tiny, small, base, paper-base or paper-big.
        tokenizer: bpe or characters, made from the texts; or a folder that has a tokenizer.
        vocabulary: number of entries of a bpe vocabulary; chosen by the length of the texts.
        start_from: a model to train further (a name, folder or file, as for ``ch.load``).
        steps, minutes: the length of the run, in one of the two; 1.5 minutes unless given.
        seed: the random seed.
        device: cpu, cuda, … or auto.
        resume: continue the run in ``out`` from its last checkpoint. The run keeps the values
            that it began with; a different value is refused.
        shard: under torchrun, shard the model over all processes (FSDP) instead of copying it.
        model: fields of :class:`~clearhead.ModelConfig` that differ from the size's.
        settings: fields of :class:`~clearhead.training.settings.TrainingSettings`.

    Yields:
        ``Started``, then ``Stepped``, ``Validated``, ``Saved`` and ``Sampled`` as they happen, and
        at last ``Finished``, whose ``folder`` holds the model: ``ch.load(folder)``.

    Raises:
        InputError: the arguments contradict each other, the texts cannot be read, or ``out`` is
            not empty.
        ConfigError: a field or a value that a model or its training does not have.
        CheckpointError: the folder cannot be written, or its checkpoints are of another run.
        DivergedError: the loss is no longer a finite number.

    >>> import tempfile
    >>> from clearhead.training.run import train
    >>> text = "the quick brown fox jumps over the lazy dog. " * 9
    >>> small = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     events = list(train([text], out=folder, tokenizer="characters", steps=2, model=small))
    >>> [type(event).__name__ for event in events]
    ['Started', 'Saved', 'Stepped', 'Stepped', 'Validated', 'Saved', 'Sampled', 'Finished']
    """
    check_train(locals())
    pairs, resume, shard = bool(pairs), bool(resume), bool(shard)  # NumPy's, too
    sources = {name: source_of(given, pairs=pairs)
               for name, given in (("texts", texts), ("validation", validation))}  # fmt: skip
    chosen = _settings(settings or {}, steps, minutes, seed)
    check_fields(model or {}, chosen)
    folder = RunFolder(out)
    asked: dict[str, Any] = {
        "texts": _paths("texts", sources), "validation": _paths("validation", sources),
        "size": size, "tokenizer": _name(tokenizer), "vocabulary": vocabulary,
        "start_from": None if start_from is None else _name(start_from),
        "model": dict(model or {}), "settings": chosen,
    }  # fmt: skip
    if resume:
        plan = Plan.from_fields(folder.plan())
        asked["texts"] = asked["texts"] or plan.texts
        check_same(Plan(**asked, pairs=pairs or plan.pairs), plan)
    else:
        asked["settings"] = _with_defaults(chosen, pairs)
        plan = Plan(**asked, pairs=pairs)
    content = {name: source.content for name, source in sources.items() if source.content}
    return _events(plan, folder, content, device_of(device), shard)


def _events(
    plan: Plan,
    folder: RunFolder,
    content: Mapping[str, Content],
    device: torch.device,
    shard: bool,
) -> Generator[Event, None, None]:
    """Begin or continue the run; leaving the generator closes the group of processes."""
    with together(device, sharded=shard) as processes:
        begun = plan.fingerprint is not None
        if processes.writes and not begun:
            folder.check_new()
        task, settings, fingerprint = prepare(
            plan, device=device, folder=folder.folder, content=content
        )
        if not begun:
            _begin(plan, folder, content, fingerprint, processes)
        yield from train_task(task, settings, folder=folder, processes=processes)


def _begin(
    plan: Plan,
    folder: RunFolder,
    content: Mapping[str, Content],
    fingerprint: str,
    processes: Processes,
) -> None:
    if processes.writes:
        stored = {STORED[name]: to_lines(given) for name, given in content.items()}
        folder.begin(plan.to_fields() | {"fingerprint": fingerprint}, stored)


def _paths(name: str, sources: Mapping[str, Source]) -> tuple[str, ...]:
    source = sources[name]
    return source.paths if source.content is None else (STORED[name],)


def _settings(
    settings: Mapping[str, object],
    steps: int | None,
    minutes: int | float | None,
    seed: int,
) -> dict[str, object]:
    """The settings with the arguments of their names; what is at its default is left out."""
    if steps is not None and minutes is not None:
        raise InputError(
            f"give steps or minutes, not both; got steps={steps} and minutes={minutes}."
        )
    arguments = {"steps": steps, "minutes": minutes, "seed": seed or None}
    given: dict[str, object] = {name: v for name, v in arguments.items() if v is not None}
    twice = sorted(set(given) & set(settings))
    if twice:
        raise InputError(f"{', '.join(twice)} is given twice: as an argument and in settings.")
    return dict(settings) | given


def _with_defaults(chosen: dict[str, object], pairs: bool) -> dict[str, object]:
    length: dict[str, object] = {"minutes": DEFAULT_MINUTES}
    if {"steps", "minutes"} & set(chosen):
        length = {}
    return {"seed": 0} | (PAIR_SETTINGS if pairs else {}) | length | chosen


def _name(given: str | Path) -> str:
    """A name as it is; a path so that it is found from everywhere."""
    return str(given.absolute()) if isinstance(given, Path) else given
