"""A run from beginning to end: the public function ``train``. Texts in, events out.

The command ``clearhead train`` is this function with a progress bar.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoints.load import resolve
from clearhead.errors import InputError
from clearhead.training.data.chats import chat_source
from clearhead.training.data.given import check_train
from clearhead.training.data.source import (
    Content,
    Given,
    Source,
    names_a_file,
    source_of,
    to_lines,
)
from clearhead.training.events import Event
from clearhead.training.loop import never, train_task
from clearhead.training.options import check_begin, check_fields, check_used, resumed
from clearhead.training.plan import STORED, Plan
from clearhead.training.prepare import content_kept, preparing
from clearhead.training.processes import device_of, together
from clearhead.training.run_folder import RunFolder
from clearhead.training.settings import LENGTH, TrainingSettings
from clearhead.training.tasks.task import Task

DEFAULT_MINUTES = 1.5
PAIR_SETTINGS = {"label_smoothing": 0.1}  # as in Vaswani et al. 2017, section 5.4
FURTHER: dict[str, Any] = {  # a trained model changes little: small steps, straight down to 0
    "optimiser": "adamw", "learning_rate": 1e-4, "matrix_learning_rate": 1e-3, "beta_2": 0.999,
    "warmup": 10, "cooldown": 1.0, "floor": 0.0, "batch_tokens": 1024, "validate_every": 20,
    "validation_tokens": 4096,
}  # fmt: skip
"""Settings of a model that is trained further, unless they are given."""
ADAPTED: dict[str, Any] = {"learning_rate": 5e-4}
"""The same for adapters, which begin at 0 and have further to go."""


def train(
    texts: Given | None = None,
    *,
    out: str | Path = "trained",
    pairs: bool = False,
    validation: Given | None = None,
    field: str | None = None,
    size: str | None = None,
    tokenizer: str | Path | None = None,
    vocabulary: int | None = None,
    start_from: str | Path | None = None,
    steps: int | None = None,
    minutes: int | float | None = None,
    seed: int | None = None,
    chats: bool = False,
    lora: int | None = None,
    freeze: str | Sequence[str] = (),
    device: str | torch.device = "auto",
    resume: bool = False,
    shard: bool = False,
    model: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    stop: Callable[[], bool] = never,
) -> Generator[Event, None, None]:
    """Train a model on texts or pairs of texts, step by step, and save it in a folder.

    Nothing is trained before the first event is asked for. A program may stop at any event: the
    checkpoints stay, and ``resume`` continues to the same numbers as if it had never stopped.

    Args:
        texts: a path (``str`` or ``Path``) or a list of ``Path``: files and folders. A list of
            strings: the texts themselves, one document each. None: Python's own reference text.
            Files may be compressed (gzip, bz2, xz); ``"-"`` is standard input.
        out: the folder of the run and of its result; it must be new or empty.
        pairs: train an encoder-decoder on pairs. ``texts`` is then a list of
            ``(source, target)`` strings, two ``Path`` of files that belong together line by line,
            or one file with a tab in each line.
        validation: texts to validate on, given as ``texts`` are; else a tenth is held out.
        field: in files of JSON Lines (``.jsonl``), the field that holds the text; ``text`` unless
            given.
        size: tiny, small, base, paper-base or paper-big; tiny unless given.
        tokenizer: bpe or characters, made from the texts; or a folder that has a tokenizer. bpe
            unless given.
        vocabulary: number of entries of a bpe vocabulary; chosen by the length of the texts.
        start_from: a model to train further (a name, folder or file, as for ``ch.load``). It keeps
            its shape and its tokenizer: the three arguments above are refused beside it. Decoders
            learn from texts or chats, encoder-decoders from pairs, encoders with a head for masked
            tokens from texts, and those that give embeddings from pairs of sentences. Rates are
            lower than for a new model (:data:`FURTHER`).
        steps, minutes: the length of the run, in one of the two; 1.5 minutes unless given.
        seed: the random seed; 0 unless given.
        chats: ``texts`` are chats, for a model with a chat template: a file of JSON Lines, or a
            list of lists of messages. Only the answers are learned.
        lora: train adapters of this rank instead of the weights (LoRA). The result is an adapter
            in PEFT's files; ``ch.load`` adds it to its base.
        freeze: parameters that stay as they are, as words or patterns: ``embeddings``,
            ``first 4`` (layers), ``attention``, ``*.norm.*``.
        device: cpu, cuda, … or auto.
        resume: continue the run in ``out`` from its last checkpoint. ``steps`` or ``minutes``,
            counted from the beginning of the run, make it longer. Everything else stays as it
            began; a different value is refused.
        shard: under torchrun, shard the model over all processes (FSDP) instead of copying it.
        model: fields of :class:`~clearhead.ModelConfig` that differ from the size's; beside
            ``start_from`` only the dropouts.
        settings: fields of :class:`~clearhead.training.settings.TrainingSettings`.
        stop: asked after each step. As soon as it is true, the run writes a checkpoint and ends
            with ``Stopped``. ``threading.Event().is_set`` will do;
            :class:`~clearhead.training.StopSignals` is true after Ctrl-C or SIGTERM.

    Yields:
        ``Read`` while long texts are read, ``Started``, then ``Stepped``, ``Validated``, ``Saved``
        and ``Sampled`` as they happen, and at last ``Finished``, whose ``folder`` holds the model:
        ``ch.load(folder)``; or ``Stopped``.
        ``Warned`` where something is wrong that does not stop the run.

    Raises:
        InputError: the arguments contradict each other, the texts cannot be read, or ``out`` is
            not empty.
        ConfigError: a field or a value that a model or its training does not have.
        CheckpointError: the folder cannot be written, a file in it is damaged, or its checkpoints
            are of another run.
        InUseError: another process trains in this folder.
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
    pairs, resume, shard, chats = map(bool, (pairs, resume, shard, chats))  # NumPy's, too
    sources = {name: chat_source(given) if chats else source_of(given, pairs=pairs)
               for name, given in (("texts", texts), ("validation", validation))}  # fmt: skip
    chosen = _settings(
        settings or {}, steps=steps, minutes=minutes, seed=seed, lora=lora, freeze=_words(freeze)
    )
    check_fields(model or {}, chosen)
    folder = RunFolder(out)
    asked: dict[str, Any] = {
        "texts": _paths("texts", sources), "validation": _paths("validation", sources),
        "pairs": pairs, "chats": chats, "field": field, "size": size,
        "tokenizer": _name(tokenizer), "vocabulary": vocabulary, "start_from": _name(start_from),
        "model": dict(model or {}), "settings": chosen,
    }  # fmt: skip
    if resume:
        record = folder.record()
        plan = resumed(asked, record.plan, record.model)
    else:
        check_begin(asked)
        plan = _new_plan(asked)
    content = {name: source.content for name, source in sources.items() if source.content}
    return _events(_Asked(plan, asked, content, resume), folder, device_of(device), shard, stop)


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What was asked for: the plan, the options as they were given, and texts that are strings."""

    plan: Plan
    options: Mapping[str, Any]
    content: Mapping[str, Content]
    resume: bool


def _events(
    asked: _Asked,
    folder: RunFolder,
    device: torch.device,
    shard: bool,
    stop: Callable[[], bool],
) -> Generator[Event, None, None]:
    """Begin or continue the run; leaving the generator ends the lock and the group of processes."""
    with ExitStack() as stack:
        processes = stack.enter_context(together(device, sharded=shard))
        if processes.writes and not asked.resume:
            stack.enter_context(folder.beginning())
            task, settings = yield from _begun(asked, folder, device)
            processes.sum(0.0)  # now the others can open it
        else:
            if processes.writes:
                stack.enter_context(folder.locked())
            if not asked.resume:
                processes.sum(0.0)  # wait for the first process, which begins the run
            plan = asked.plan if asked.resume else folder.record().plan
            _check_content(asked, folder)
            task, settings, _ = yield from preparing(plan, device=device, folder=folder)
        yield from train_task(task, settings, folder=folder, processes=processes, stop=stop)


def _begun(
    asked: _Asked, folder: RunFolder, device: torch.device
) -> Generator[Event, None, tuple[Task, TrainingSettings]]:
    """Begin a run: tokens, tokenizer, and at last the record."""
    content = content_kept(asked.plan, asked.content)
    task, settings, fingerprint = yield from preparing(
        asked.plan, device=device, content=content, tokens=folder.new_tokens()
    )
    check_used(asked.options, task.model.config, settings)
    begun = dataclasses.replace(
        asked.plan, settings=dataclasses.asdict(settings), fingerprint=fingerprint
    )
    stored = {STORED[name]: to_lines(given) for name, given in content.items()}
    base = None if task.base is None else resolve(task.base.name)
    folder.begin(begun, task.model.config, task.tokenizer, stored, base)
    return task, settings


def _check_content(asked: _Asked, folder: RunFolder) -> None:
    """Texts that are given again for a run that has begun must be the same."""
    for name, given in asked.content.items():
        if folder.checked(STORED[name]).read_bytes() != to_lines(given).encode():
            raise InputError(
                "the texts are not those that the run began with.",
                hint=f"leave {name} out to resume the run, or begin a new one.",
            )


def _new_plan(asked: Mapping[str, Any]) -> Plan:
    """The plan of a new run; its settings are complete once they are checked."""
    given = {name: value for name, value in asked.items() if value is not None}
    return Plan(**given | {"settings": _with_defaults(asked)})


def _paths(name: str, sources: Mapping[str, Source]) -> tuple[str, ...]:
    source = sources[name]
    return source.paths if source.content is None else (STORED[name],)


def _settings(settings: Mapping[str, object], **arguments: Any) -> dict[str, object]:
    """The settings, together with the arguments of their names."""
    given: dict[str, object] = {name: v for name, v in arguments.items() if v is not None}
    twice = sorted(set(given) & set(settings))
    if twice:
        raise InputError(f"{', '.join(twice)} is given twice: as an argument and in settings.")
    all_of_them = dict(settings) | given
    lengths = {name: all_of_them[name] for name in LENGTH if all_of_them.get(name) is not None}
    if len(lengths) > 1:
        said = " and ".join(f"{name}={value}" for name, value in lengths.items())
        raise InputError(f"give steps or minutes, not both; got {said}.")
    return all_of_them


def _with_defaults(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with defaults that depend on what is trained."""
    chosen: dict[str, Any] = asked["settings"]
    defaults: dict[str, Any] = {"minutes": DEFAULT_MINUTES}
    if any(chosen.get(name) is not None for name in LENGTH):
        defaults = {}
    if asked["start_from"] is not None:
        defaults |= FURTHER
    elif asked["pairs"]:
        defaults |= PAIR_SETTINGS
    if chosen.get("lora") is not None:
        defaults |= ADAPTED
    return defaults | chosen


def _words(freeze: str | Sequence[str]) -> str | None:
    return (freeze if isinstance(freeze, str) else ", ".join(freeze)) or None


def _name(given: str | Path | None) -> str | None:
    """A name as it is; a path so that it is found from everywhere."""
    made_here = given in (None, "bpe", "characters")  # kinds of tokenizers
    if isinstance(given, Path) or (given is not None and not made_here and names_a_file(given)):
        return str(Path(given).absolute())
    return given
