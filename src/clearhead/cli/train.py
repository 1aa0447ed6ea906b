"""``clearhead train``: a language model from texts, or a translator from pairs, trained here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.loading import waiting
from clearhead.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from clearhead.training.events import Event
    from clearhead.training.plan import Plan
    from clearhead.training.processes import Processes

DEFAULT_MINUTES = 1.5
OUT = "trained"


@click.command("train")
@click.argument("texts", metavar="[TEXT]...", nargs=-1, type=click.Path())
@click.option("--pairs", is_flag=True,
              help="TEXT is a source and a target file, or one with tabs.")  # fmt: skip
@click.option("--out", "-o", type=click.Path(), default=OUT, show_default=True,
              help="The folder that the model goes to.")  # fmt: skip
@click.option("--from", "start_from", metavar="MODEL", help="Train this model further.")
@click.option("--size", default="tiny", show_default=True,
              help="tiny, small, base, paper-base or paper-big.")  # fmt: skip
@click.option("--tokenizer", default="bpe", show_default=True,
              help="bpe, characters, or a folder that has one.")  # fmt: skip
@click.option("--vocabulary", type=int, help="Entries of a bpe vocabulary.")
@click.option("--validation", multiple=True, type=click.Path(),
              help="Text to validate on (twice for pairs); else a tenth is held out.")  # fmt: skip
@click.option("--steps", type=int, help="How long: so many steps …")
@click.option("--minutes", type=float, help="… or so many minutes (1.5 unless given).")
@click.option("--seed", type=int, default=0, show_default=True, help="What chance follows from.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE",
              help="Any field of the model or of its training: --set layers=3.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, … or auto.")
@click.option("--shard", is_flag=True, help="With torchrun: cut the model over all processes.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard files, too.")
@click.option("--resume", is_flag=True, help="Continue the run in --out from its last checkpoint.")
def command(
    texts: tuple[str, ...], out: str, resume: bool, device: str, shard: bool, tensorboard: bool,
    changes: tuple[str, ...], steps: int | None, minutes: float | None, seed: int, **options: Any,
) -> None:  # fmt: skip
    """Train a model on TEXT: files, or folders of them.

    Without a TEXT, on the reference text that every Python carries. The result is a folder for
    generate, translate, look and watch; transformers opens it, too. Ctrl-C loses nothing:
    --resume goes on. On several machines: torchrun … -m clearhead train …
    """
    from clearhead.training.processes import together

    where = _device(device)
    with together(where, sharded=shard) as processes:
        plan = None if resume else _plan(texts, changes, steps, minutes, seed, options)
        _run(plan, Path(out), where, processes, tensorboard)


def _plan(
    texts: tuple[str, ...], changes: tuple[str, ...], steps: int | None, minutes: float | None,
    seed: int, options: dict[str, Any],
) -> Plan:  # fmt: skip
    from clearhead.training.plan import Plan, sorted_fields

    if steps is not None and minutes is not None:
        raise click.UsageError("--steps or --minutes, not both.")
    model, settings = sorted_fields(dict(map(_change, changes)))
    settings |= {"seed": seed}
    if steps is not None:
        settings["steps"] = steps
    elif "steps" not in settings:
        settings.setdefault("minutes", DEFAULT_MINUTES if minutes is None else minutes)
    if options["pairs"]:
        settings = {"label_smoothing": 0.1} | settings
    paths = tuple(str(Path(text).absolute()) for text in texts)
    validation = tuple(str(Path(text).absolute()) for text in options.pop("validation"))
    return Plan(texts=paths, validation=validation, model=model, settings=settings, **options)


def _change(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--set wants NAME=VALUE; got {text!r}.")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()  # a word


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        said = str(error).partition("\n")[0]
        raise InputError(f"there is no device {name!r}: {said}", hint="--device cpu") from None
    return device


def _run(
    plan: Plan | None, out: Path, device: torch.device, processes: Processes, tensorboard: bool
) -> None:
    """Begin or continue a run, and show it."""
    from clearhead.cli.train_view import TrainView
    from clearhead.training.loop import train
    from clearhead.training.plan import Plan
    from clearhead.training.prepare import prepare
    from clearhead.training.run_folder import RunFolder

    folder = RunFolder(out)
    if plan is None:
        plan = Plan.from_fields(folder.plan())
    elif processes.writes:
        folder.check_new()
    with waiting("reading the texts …"):
        task, settings, fingerprint = prepare(plan, device=device, folder=folder.folder)
    if processes.writes and not folder.begun:
        folder.begin(Plan.from_fields(plan.to_fields() | {"fingerprint": fingerprint}).to_fields())
    events: Iterator[Event] = train(task, settings, folder=folder, processes=processes)
    if not processes.writes:
        for _ in events:
            pass
        return
    view = TrainView(folder, task.model.config, tensorboard=tensorboard)
    try:
        view.show(events)
    except KeyboardInterrupt:
        click.echo(f"\nstopped; to go on: clearhead train --resume --out {out}", err=True)
        raise click.exceptions.Abort from None
    view.finish(out)
