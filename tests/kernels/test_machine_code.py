"""Machine code that is kept: the same functions without numba, and never a wrong one."""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from clearhead.kernels import machine_code as module
from clearhead.kernels.machine_code import MachineCode, is_kept, machine_code, sources_of
from clearhead.kernels.object_file import UnlinkableError

numba = pytest.importorskip("numba")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="nothing is kept here"
)

Number = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
FACTS = {"lanes": 16, "names": ["a", "b"]}


def thrice(number: Any) -> Any:
    return 3 * number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where numba and we keep things in this test; the sources are there, too."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "kernel.py").write_text("a = 1\n")
    return tmp_path


def build() -> MachineCode:
    from clearhead.kernels.compiling import compiled

    function = compiled.__wrapped__(thrice, numba.types.int64(numba.types.int64))
    return MachineCode({"thrice": int(function.address)}, FACTS)


def never() -> MachineCode:
    pytest.fail("it is kept: nothing is to be built")


def kept(folder: Path) -> Path:
    (found,) = (folder / "kept").glob("test.thrice-*.kernel")
    return found


def test_what_is_kept_computes_the_same(folder: Path) -> None:
    assert not is_kept("test.thrice", [folder])
    built = machine_code("test.thrice", [folder], build)
    assert is_kept("test.thrice", [folder])
    found = machine_code("test.thrice", [folder], never)
    assert found.facts == FACTS
    assert found.addresses["thrice"] != built.addresses["thrice"]
    assert Number(found.addresses["thrice"])(14) == 42


def test_another_source_is_built_anew(folder: Path) -> None:
    machine_code("test.thrice", [folder], build)
    module._sources_digest.cache_clear()
    (folder / "kernel.py").write_text("a = 2\n")
    assert not is_kept("test.thrice", [folder])
    module._sources_digest.cache_clear()
    (folder / "kernel.py").write_text("a = 1\n")
    assert is_kept("test.thrice", [folder])


@pytest.mark.parametrize("setting", ["NUMBA_CPU_NAME", "NUMBA_OPT"])
def test_other_settings_have_files_of_their_own(
    setting: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_code("test.thrice", [folder], build)
    monkeypatch.setenv(setting, "1")
    assert not is_kept("test.thrice", [folder])


def test_a_damaged_file_is_not_used(folder: Path) -> None:
    machine_code("test.thrice", [folder], build)
    path = kept(folder)
    whole = path.read_bytes()
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert module._loaded(path) is None, place
        path.write_bytes(whole[:place])
        assert module._loaded(path) is None, place
    assert machine_code("test.thrice", [folder], build).facts == FACTS
    assert path.read_bytes() == whole  # written again


def test_what_cannot_be_linked_is_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_code("test.thrice", [folder], build)

    def refuse(*_given: object) -> None:
        raise UnlinkableError("memory may not be run")

    monkeypatch.setattr(module, "link", refuse)
    assert Number(machine_code("test.thrice", [folder], build).addresses["thrice"])(5) == 15


def test_nothing_is_kept_of_what_numba_did_not_compile(folder: Path) -> None:
    def foreign() -> MachineCode:
        return MachineCode({"thrice": 7})

    assert machine_code("test.thrice", [folder], foreign).addresses["thrice"] == 7
    assert machine_code("test.thrice", [folder], lambda: None) is None
    assert not is_kept("test.thrice", [folder])


def test_without_numba_nothing_kept_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_code("test.thrice", [folder], build)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not is_kept("test.thrice", [folder])


def test_the_folders_of_a_module() -> None:
    assert sources_of("/a/b.py") == (Path("/a"), Path("/a/kernels"))
