"""``clearhead train`` in processes of its own that start quickly and can be killed."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.shared.ports import free_port

# A server that has imported everything once: a process of its own costs milliseconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["clearhead.cli.train", "clearhead.training.prepare"])


def start(*arguments: str, ranks: int = 1, lost: int | None = None) -> list[BaseProcess]:
    """Start the command in one process, or in several as torchrun does.

    The process ``lost`` is killed in its seventh step.
    """
    port = free_port()
    processes: list[BaseProcess] = [
        FORKS.Process(target=run_train, args=(list(arguments), rank, ranks, port, lost))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    return processes


def run_train(arguments: Sequence[str], rank: int, ranks: int, port: int, lost: int | None) -> None:
    """What a started process does; it says why it failed in a file beside the run."""
    import torch

    from clearhead.cli.train import command
    from clearhead.errors import ClearheadError

    torch.set_num_threads(1)
    if ranks > 1:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
    if rank == lost:
        killed_in_step(7)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    try:
        command.main(list(arguments), standalone_mode=False)
    except ClearheadError as error:
        out = Path(arguments[list(arguments).index("--out") + 1])
        (out.parent / f"{out.name}-error-{rank}").write_text(str(error))
        os._exit(1)
    os._exit(0)


def killed_in_step(number: int) -> None:
    """This process is killed where it has computed a step and has not told the others yet."""
    from clearhead.training.processes.signals import StopSignals

    steps = itertools.count(1)

    def ask(_: StopSignals) -> bool:  # each process asks once in a step
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    StopSignals.__call__ = ask  # type: ignore[method-assign, assignment]
