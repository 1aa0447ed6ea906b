"""Signals: the first is a wish, the second acts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from clearhead.training.processes.signals import StopSignals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_is_noted(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with StopSignals() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop() and stop.exit_code == code
    assert signal.getsignal(number) == before


@pytest.fixture(autouse=True)
def not_in_the_background() -> Iterator[None]:
    """A shell that starts the tests in the background makes them deaf to SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_second_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), StopSignals():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_second_terminates() -> None:
    code = (
        "import os, signal\nfrom clearhead.training.processes.signals import StopSignals\n"
        "with StopSignals() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    print(stop(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True\n", -signal.SIGTERM)


def test_before_it_is_armed_a_signal_ends_the_program() -> None:
    with pytest.raises(KeyboardInterrupt), StopSignals(armed=False):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(SystemExit) as end, StopSignals(armed=False):
        os.kill(os.getpid(), signal.SIGTERM)
    assert end.value.code == 143
    with StopSignals(armed=False) as stop:
        stop.arm()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()


def test_torchrun_passes_signals_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal tells every process, and torchrun tells its own once more: one wish."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with StopSignals() as stop:
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert stop() and stop.exit_code == 130


def test_without_a_signal_another_process_got_it() -> None:
    assert StopSignals().exit_code == 143


def test_in_another_thread_nothing_is_noted() -> None:
    before, found = signal.getsignal(signal.SIGINT), []

    def inside() -> None:
        with StopSignals() as stop:
            found.append((stop(), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [(False, before)]
