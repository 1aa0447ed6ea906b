"""Making a model's CPU engine ready while somebody waits: a line that says how far it is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from clearhead.cli import loading
from clearhead.cli.printing import clear_line, say

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded


EIGHT_BITS = click.option(
    "--eight-bits", is_flag=True,
    help="16-bit weights become 8 bits in the CPU engine: faster, half the memory, some loss.",
)  # fmt: skip


def prepare_engine(loaded: Loaded, engine: bool | None, *, eight_bits: bool = False) -> None:
    """Compile the engine's kernels, or load them from disk, and quantise the weights.

    The float32 weights of a decoder are let go: a command that only writes has no use for them.
    Where torch is to run the model (``engine`` False, or nothing else can) nothing happens, but the
    reason is told.
    """
    if engine is False:
        return
    from clearhead.engine.runner import engine_of, torch_reason
    from clearhead.models.encoder import Encoder

    if isinstance(loaded.model, Encoder):
        return
    reason = torch_reason(loaded)
    if reason is not None:
        if engine is None:
            say(f"torch runs {loaded.name}, not the faster CPU engine: {reason}.", err=True)
        return
    line = ProgressLine()
    try:
        engine_of(loaded.model, keep_float32=False, eight_bits=eight_bits, progress=line.show)
    finally:
        line.wipe()


class ProgressLine:
    """One line on standard error, drawn anew with every step once it has taken long.

    Where standard error is no terminal, it says once what is being waited for.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._shown = False

    def show(self, done: int, total: int, what: str) -> None:
        """So many steps of so many are done."""
        if time.monotonic() - self._start < loading.PATIENCE or done == total:
            return
        if self._terminal:
            clear_line()
            say(f"{what}: {done} of {total} …", err=True, nl=False)
        elif not self._shown:
            say(f"{what} …", err=True)
        self._shown = True

    def wipe(self) -> None:
        """Leave nothing behind on a terminal."""
        if self._shown and self._terminal:
            clear_line()
