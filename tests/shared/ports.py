"""Ports for tests that must know one before anybody listens there."""

from __future__ import annotations

import itertools
import os
import socket

# Below those that a system gives to connections and to port 0; a share for each test process.
FIRST, SHARE, SHARES = 20_000, 100, 120
_next = itertools.count()


def free_port() -> int:
    """A port of this machine that nobody has, and that nobody gets by chance until it is used."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    share = (7 * os.getppid() + int(worker)) % SHARES  # other suites may run on this machine
    for _ in range(SHARE):
        port = FIRST + share * SHARE + next(_next) % SHARE
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
