"""Commands on a terminal: what a person would see, byte by byte.

A program that has imported torch once forks for each command, which gets a terminal of its own.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 240.0  # seconds for one command
OWN = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\[[0-9]*[KA]|\x1b\[\?25[lh]"
)  # colours, lines wiped, the cursor


@dataclass(frozen=True)
class Seen:
    """What a command wrote to its terminal, and how it ended."""

    arguments: list[str]
    output: str
    code: int

    @property
    def commands(self) -> set[str]:
        """The characters that command a terminal, without those of our own renderer."""
        plain = OWN.sub("", self.output).replace("\r\n", "\n").replace("\r", "")
        return {one for one in plain if commands_a_terminal(one)}


def commands_a_terminal(character: str) -> bool:
    """True for control characters but line breaks and tabs, and for bidirectional controls."""
    code = ord(character)
    control = code < 0x20 or 0x7F <= code < 0xA0
    turning = (
        code in (0x61C, 0x200E, 0x200F) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    )
    return (control and character not in "\n\t") or turning


def on_terminals(
    commands: list[list[str]], folder: Path, typed: str = "", **env: str
) -> list[Seen]:
    """Run commands one after the other, each on a terminal; ``typed`` is what the user types."""
    work = {"commands": commands, "typed": typed, "folder": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.shared.terminals"], input=json.dumps(work), text=True,
        capture_output=True, timeout=PATIENCE * len(commands), env=os.environ | env, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [Seen(*one) for one in found]


def _on_a_terminal(arguments: list[str], typed: str) -> tuple[list[str], str, int]:
    child, terminal = pty.fork()
    if child == 0:
        sys.argv = ["clearhead", *arguments]
        from clearhead.cli.start import main

        try:
            main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)
        sys.stdout.flush()
        os._exit(0)
    os.write(terminal, typed.encode())
    output, deadline = b"", time.monotonic() + PATIENCE
    while select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the terminal is closed
            break
        output += piece
        if not piece:
            break
    else:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return arguments, output.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)


def main() -> None:
    """Run the commands that standard input names; write a line of JSON for each."""
    import torch  # noqa: F401 (once, for all of them)

    import clearhead.views.looking  # noqa: F401

    work = json.loads(sys.stdin.read())
    os.chdir(work["folder"])
    for arguments in work["commands"]:
        sys.stdout.write(json.dumps(_on_a_terminal(arguments, work["typed"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
