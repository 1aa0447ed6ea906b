"""Ctrl-C at any time ends any command: exit code 130, one line, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from clearhead.cli import interrupts

STARTED = "import clearhead.cli.start as start, sys, os, time, threading, signal\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STARTED + code], capture_output=True, text=True, timeout=300
    )


def test_before_a_command_begins() -> None:
    done = run("os.kill(os.getpid(), signal.SIGINT); time.sleep(600)")
    assert (done.returncode, done.stderr) == (130, "stopped.\n")


SWALLOWED = """
start.interrupts.listen()
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(600)
except BaseException:
    time.sleep(600)
"""


def test_an_exception_that_a_library_swallows() -> None:
    done = run(SWALLOWED)
    assert (done.returncode, done.stderr) == (130, "stopped.\n")


DROPPED = """
import weakref
start.interrupts.listen()
if sys.argv[1] == "patient":
    start.interrupts.be_patient()
class Thing:
    def __del__(self):
        if sys.argv[2] == "deletion":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(600)
def called_back(_):
    if sys.argv[2] == "callback":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
thing = Thing()
reference = weakref.ref(thing, called_back)
begin = time.monotonic()
try:
    del thing
    time.sleep(600)
except KeyboardInterrupt:
    print("at once" if time.monotonic() < begin + start.interrupts.GRACE else "late")
"""


@pytest.mark.parametrize("place", ["callback", "deletion"])
@pytest.mark.parametrize("kind", ["patient", "usual"])
def test_an_exception_that_python_drops(kind: str, place: str) -> None:
    """Python cannot raise it in the callback of a weak reference: it is raised right after."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED + DROPPED, kind, place],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if kind == "usual" and (done.returncode, done.stderr) == (130, "stopped.\n"):
        return  # a machine so busy that the thread came first
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "at once\n" or kind == "patient"


CUT = """
start.interrupts.listen()
class Half:
    def __del__(self):
        self.never_made.close()
try:
    half = Half()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
except KeyboardInterrupt:
    del half
half = Half()
if sys.argv[1] == "settled":
    start.interrupts.settled()
del half
"""


@pytest.mark.parametrize("argument", ["settled", "unsettled"])
def test_what_ctrl_c_cut_in_two_cleans_up_in_silence(argument: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTED + CUT, argument], capture_output=True, text=True, timeout=300
    )
    if argument == "unsettled":
        assert (done.returncode, done.stderr) == (0, "")
    else:  # an error of its own is shown
        assert done.returncode == 0
        assert done.stderr.count("AttributeError") == 1


COMPILED = """
import torch
start.interrupts.listen()
a = torch.ones(3000, 3000)
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    torch.linalg.multi_dot([a] * 2000)
except KeyboardInterrupt:  # it came just before, and is swallowed
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_long_computation_in_compiled_code() -> None:
    done = run(COMPILED)
    assert (done.returncode, done.stderr) == (130, "stopped.\n")


UNFINISHED = """
from pathlib import Path
from clearhead.files.atomic_write import atomic_write
start.interrupts.listen()
with atomic_write(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(600)
    except BaseException:
        time.sleep(600)
"""


def test_nothing_is_left_half_written(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    done = subprocess.run(
        [sys.executable, "-c", STARTED + UNFINISHED, str(path)], capture_output=True, timeout=300
    )
    assert done.returncode == 130
    assert list(tmp_path.iterdir()) == []


PATIENT = """
start.interrupts.listen()
start.interrupts.be_patient()
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(start.interrupts.GRACE + 0.5)  # a checkpoint is written
print("saved")
"""


def test_a_command_that_saves_its_state_is_waited_for() -> None:
    done = run(PATIENT)
    assert (done.returncode, done.stdout) == (0, "saved\n")


SETTLED = """
start.interrupts.listen()
for _ in range(2):
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(600)
    except KeyboardInterrupt:
        start.interrupts.settled()
    time.sleep(start.interrupts.GRACE + 0.3)
print("on")
"""


def test_an_answer_that_is_ended_does_not_end_the_chat() -> None:
    done = run(SETTLED)
    assert (done.returncode, done.stdout) == (0, "on\n")


ENDING = """
import atexit
@atexit.register
def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
sys.argv = ["clearhead", sys.argv[1]]
start.main()
"""


@pytest.mark.parametrize("argument", ["--version", "--help", "models", "nonsense", "--nonsense"])
def test_while_python_is_ending(argument: str) -> None:
    """The command is done or has failed; libraries are cleaning up after themselves."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED + ENDING, argument],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("stopped.\n")
    assert "Traceback" not in done.stderr


SHOWING = """
import clearhead.cli.main as main
def say(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
main.say = say
sys.argv = ["clearhead", *sys.argv[1:]]
start.main()
"""


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["look", "text", "--model", "no such"]], ids=["usage", "ours"]
)
def test_while_an_error_is_shown(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTED + SHOWING, *arguments],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "stopped.\n")


def test_other_threads_cannot_listen() -> None:
    """A program that calls us from a thread keeps its own way with signals."""
    before = signal.getsignal(signal.SIGINT)
    for called in (interrupts.listen, interrupts.leave_at_once):
        thread = threading.Thread(target=called)
        thread.start()
        thread.join()
    assert signal.getsignal(signal.SIGINT) is before


MOMENTS = (0.15, 0.3, 0.6, 1.0, 1.5, 2.2, 3.0)
COMMANDS = [
    ["look", "3rd of March 2021", "--model", "dates", "--svg", "look.svg"],
    ["steps", "3rd of March 2021", "--model", "dates"],
    ["map", "3rd of March 2021", "--model", "dates", "--png", "map.png"],
    ["heads", "--model", "dates", "--json", "heads.json"],
    ["diff", "3rd of March 2021", "4th of May 2020", "--model", "dates", "--html", "diff.html"],
    ["translate", "3rd of March 2021", "--model", "dates"],
    ["generate", "the", "--model", "ENDLESS", "-n", "190"],
    ["chat", "--model", "ENDLESS"],
    ["models"],
]


def stopped(arguments: list[str], moment: float, folder: Path) -> tuple[int, str]:
    """The exit code and the messages of a command that gets Ctrl-C at a moment after its start."""
    running = subprocess.Popen(
        [sys.executable, "-m", "clearhead", *arguments], cwd=folder, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"CLEARHEAD_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    time.sleep(moment)
    running.send_signal(signal.SIGINT)
    _, messages = running.communicate(timeout=300)
    return running.returncode, messages


def check(code: int, messages: str, folder: Path) -> None:
    if code == -signal.SIGINT:  # Python itself was starting, or importing the start
        assert "/clearhead/cli/main" not in messages, messages
        return
    if "Fatal Python error: init_" in messages:  # so does Python itself, in its first moments
        assert "/clearhead/" not in messages, messages
        return
    assert code in (0, 130), messages  # 0: it was over before
    assert "Traceback" not in messages, messages
    if code == 130:
        assert messages.splitlines().count("stopped.") == 1, messages
    assert not list(folder.rglob(".*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[one[0] for one in COMMANDS])
def test_ctrl_c_at_any_moment(number: int, endless_folder: Path, tmp_path: Path) -> None:
    """Each command at two moments, others for each command, so that all moments are tried."""
    arguments = [str(endless_folder) if one == "ENDLESS" else one for one in COMMANDS[number]]
    moments = (MOMENTS[number % len(MOMENTS)], MOMENTS[(number + 3) % len(MOMENTS)])
    folders = [tmp_path / str(moment) for moment in moments]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:  # they mostly wait
        ended = list(pool.map(partial(stopped, arguments), moments, folders))
    for folder, end in zip(folders, ended, strict=True):
        check(*end, folder)
