"""The store with fake wheels in a local folder: pip itself runs, only its index is replaced."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import clearhead.checkpoints.store.model_store as store_module
from clearhead.checkpoints.store.cache_folder import cache_folder
from clearhead.checkpoints.store.catalogue import CATALOGUE, CatalogueEntry, CatalogueFile, Wheel
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.errors import StoreError

ROOT = Path(__file__).resolve().parents[3]
WEIGHTS = bytes(range(251)) * 2003
CONFIG = b'{"layers": 7}'
WHEEL_NAME = "clearhead_fake_model-0.1.2-py3-none-any.whl"


def fake_wheel(folder: Path) -> Path:
    path = folder / WHEEL_NAME
    about = "clearhead_fake_model-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("fake/model/weights.gguf", WEIGHTS)
        archive.writestr("fake/model/sub/config.json", CONFIG)
        archive.writestr("fake/__init__.py", "raise SystemExit('never imported')")
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: clearhead-fake-model\nVersion: 0.1.2\n"
            "Requires-Dist: package-that-does-not-exist\n",
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fake_entry(
    wheel: Path, sha: str | None = None, wheel_size: int | None = None
) -> CatalogueEntry:
    content = wheel.read_bytes()
    return CatalogueEntry(
        name="fake",
        kind="decoder",
        layers=7,
        heads=3,
        parameters=500_000,
        licence="Apache-2.0",
        description="made by a test",
        main="weights.gguf",
        wheel=Wheel(
            "clearhead-fake-model",
            "0.1.2",
            WHEEL_NAME,
            len(content) if wheel_size is None else wheel_size,
            sha or sha256(content),
        ),
        files=(
            CatalogueFile("weights.gguf", len(WEIGHTS), sha256(WEIGHTS), "fake/model/weights.gguf"),
            CatalogueFile(
                "sub/config.json", len(CONFIG), sha256(CONFIG), "fake/model/sub/config.json"
            ),
        ),
    )


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all the package index there is."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    fake_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


@pytest.fixture
def store(shelf: Path, tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "home", {"fake": fake_entry(shelf / WHEEL_NAME)})


def leftovers(store: ModelStore) -> list[str]:
    return [path.name for path in (store.home / "models").iterdir() if ".part-" in path.name]


def test_the_life_of_a_model(store: ModelStore) -> None:
    assert not store.installed("fake")
    seen: list[tuple[int, int, str]] = []
    path = store.pull("fake", lambda *news: seen.append(news))
    assert path == store.home / "models" / "fake" / "weights.gguf"
    assert path.read_bytes() == WEIGHTS
    assert (store.folder_of("fake") / "sub" / "config.json").read_bytes() == CONFIG
    assert store.installed("fake")
    assert store.damaged("fake") == {}
    assert {what for _, _, what in seen} == {"downloading", "unpacking"}
    assert all(0 <= done <= total for done, total, _ in seen)
    assert seen[-1] == (len(WEIGHTS) + len(CONFIG),) * 2 + ("unpacking",)
    assert leftovers(store) == []

    seen.clear()
    assert store.pull("fake", lambda *news: seen.append(news)) == path
    assert seen == []

    path.write_bytes(WEIGHTS[::-1])  # the size is right, the contents are not
    assert store.installed("fake")
    assert store.damaged("fake") == {"weights.gguf": "contents changed (SHA-256 differs)"}
    assert store.pull("fake", verify=True).read_bytes() == WEIGHTS
    assert store.damaged("fake") == {}

    store.remove("fake")
    assert not store.folder_of("fake").exists()
    assert leftovers(store) == []
    with pytest.raises(StoreError, match="fake is not here, so there is nothing to remove"):
        store.remove("fake")


def test_a_file_cut_short_is_fetched_again(store: ModelStore) -> None:
    folder = store.folder_of("fake")
    folder.mkdir(parents=True)
    (folder / "weights.gguf").write_bytes(WEIGHTS[:7])
    assert store.damaged("fake") == {
        "weights.gguf": f"7 bytes instead of {len(WEIGHTS)}",
        "sub/config.json": "missing",
    }
    assert store.pull("fake").read_bytes() == WEIGHTS
    assert store.damaged("fake") == {}


def test_offline_says_what_to_do(store: ModelStore, shelf: Path) -> None:
    (shelf / WHEEL_NAME).unlink()
    with pytest.raises(
        StoreError, match=r"pip could not download clearhead-fake-model 0\.1\.2"
    ) as e:
        store.pull("fake")
    assert e.value.hint is not None
    assert "clearhead models pull fake" in e.value.hint
    assert "any path works" in e.value.hint
    assert str(store.folder_of("fake")) in e.value.hint
    assert not store.folder_of("fake").exists()
    assert leftovers(store) == []


def test_other_contents_are_refused(shelf: Path, tmp_path: Path) -> None:
    entry = fake_entry(shelf / WHEEL_NAME, sha="0" * 64)
    store = ModelStore(tmp_path / "home", {"fake": entry})
    with pytest.raises(StoreError, match="arrived with other contents than clearhead knows"):
        store.pull("fake")
    assert not store.folder_of("fake").exists()
    assert leftovers(store) == []


def test_a_full_disk_is_seen_before_the_download(shelf: Path, tmp_path: Path) -> None:
    entry = fake_entry(shelf / WHEEL_NAME, wheel_size=10**18)
    store = ModelStore(tmp_path / "home", {"fake": entry})
    with pytest.raises(StoreError, match=r"needs \d+ MB in .*home, but only \d+ MB are free"):
        store.pull("fake")


def test_python_without_pip(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(store.home))
    (store.home / "pip").mkdir(parents=True)  # shadows pip with nothing runnable
    (store.home / "pip" / "__init__.py").touch()
    (store.home / "pip" / "__main__.py").write_text(
        "raise SystemExit('python: No module named pip')"
    )
    with pytest.raises(StoreError, match="has no pip"):
        store.pull("fake")


def test_a_home_that_cannot_be_written(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ModelStore(tmp_path / "file", {"fake": fake_entry(shelf / WHEEL_NAME)})
    assert not store.installed("fake")
    with pytest.raises(StoreError, match=r"cannot write to .*file") as caught:
        store.pull("fake")
    assert caught.value.hint is not None
    assert "CLEARHEAD_HOME" in caught.value.hint


def test_unknown_names(store: ModelStore) -> None:
    for call in (store.pull, store.remove, store.installed, store.folder_of, store.damaged):
        with pytest.raises(StoreError, match=r"no model named '\.\./x'; there are fake"):
            call("../x")


def test_a_model_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PACKAGE", tmp_path)
    entry = CatalogueEntry(
        name="dates",
        kind="encoder-decoder",
        layers=2,
        heads=3,
        parameters=5,
        licence="Apache-2.0",
        description="built in",
        files=(CatalogueFile("config.json", len(CONFIG), sha256(CONFIG)),),
        package_folder="models/dates",
    )
    store = ModelStore(tmp_path / "home", {"dates": entry})
    with pytest.raises(StoreError, match="its files are missing or damaged"):
        store.pull("dates")
    (tmp_path / "models" / "dates").mkdir(parents=True)
    (tmp_path / "models" / "dates" / "config.json").write_bytes(CONFIG)
    assert store.pull("dates") == tmp_path / "models" / "dates"
    assert store.damaged("dates") == {}
    with pytest.raises(StoreError, match="part of clearhead itself"):
        store.remove("dates")
    assert not (tmp_path / "home").exists()


def test_an_entry_has_one_origin() -> None:
    with pytest.raises(ValueError, match="from a wheel or from the package, not both"):
        CatalogueEntry("x", "decoder", 2, 3, 5, "MIT", "", files=())


PULLER = """
from pathlib import Path
from tests.checkpoints.store.test_model_store import fake_entry, WHEEL_NAME
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.errors import StoreError
def progress(done, total, what):
    print(what, flush=True)
store = ModelStore({home!r}, {{"fake": fake_entry(Path({shelf!r}) / WHEEL_NAME)}})
{before}
try:
    print(store.pull("fake", progress))
except StoreError as error:
    print("refused:", error)
"""


def puller(store: ModelStore, shelf: Path, before: str = "") -> subprocess.Popen[str]:
    program = PULLER.format(home=str(store.home), shelf=str(shelf), before=before)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(store_module.PACKAGE.parent)},
        start_new_session=True,
    )


@pytest.mark.kill
def test_two_processes_at_once_download_once(store: ModelStore, shelf: Path) -> None:
    outputs = [p.communicate(timeout=300)[0] for p in [puller(store, shelf), puller(store, shelf)]]
    assert all(output.splitlines()[-1].endswith("weights.gguf") for output in outputs)
    assert sum("unpacking" in output for output in outputs) == 1
    assert store.damaged("fake") == {}
    assert leftovers(store) == []


@pytest.mark.kill
def test_killed_half_way_then_pulled_again(store: ModelStore, shelf: Path) -> None:
    slow = "import clearhead.checkpoints.store.model_store as s, time\n"
    slow += "s.unpack_wheel = lambda *_: (print('half-way', flush=True), time.sleep(60))"
    process = puller(store, shelf, before=slow)
    assert process.stdout is not None
    while process.stdout.readline().strip() != "half-way":
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert leftovers(store) != []
    assert not store.installed("fake")
    assert store.pull("fake").read_bytes() == WEIGHTS
    assert leftovers(store) == []


@pytest.mark.kill
def test_killed_while_pip_runs(store: ModelStore, shelf: Path) -> None:
    process = puller(store, shelf)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "downloading"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert store.pull("fake").read_bytes() == WEIGHTS
    assert leftovers(store) == []


def test_interrupted_by_the_user(store: ModelStore) -> None:
    def interrupt(done: int, total: int, what: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.pull("fake", interrupt)
    assert leftovers(store) == []
    assert not store.folder_of("fake").exists()


@pytest.mark.parametrize("limit", [len(WEIGHTS) // 200, len(WEIGHTS) - 1000])
def test_disk_full_in_pip_or_in_unpacking(store: ModelStore, shelf: Path, limit: int) -> None:
    size = (shelf / WHEEL_NAME).stat().st_size
    assert len(WEIGHTS) // 200 < size < len(WEIGHTS) - 1000
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    output = puller(store, shelf, before=full).communicate(timeout=300)[0]
    assert "refused:" in output
    assert "full" in output
    assert not store.folder_of("fake").exists()
    assert leftovers(store) == []


def test_the_lock_is_waited_for_and_said_so(store: ModelStore, shelf: Path) -> None:
    holder = "from filelock import FileLock; import sys\n"
    holder += "(store.home / 'models').mkdir(parents=True)\n"
    holder += "lock = FileLock(store.home / 'models' / '.fake.lock').acquire()\n"
    holder += "print('held', flush=True); sys.stdin.readline(); raise SystemExit"
    process = puller(store, shelf, before=holder)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "held"
    seen: list[str] = []

    def told(done: int, total: int, what: str) -> None:
        seen.append(what)
        if len(seen) == 1:  # it waits: now the other one may go
            process.communicate("go\n")

    store.pull("fake", told)
    assert seen[0] == "waiting for another process" and process.returncode == 0


def test_where_models_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"
    assert ModelStore().home == tmp_path / "chosen"
    monkeypatch.delenv("CLEARHEAD_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "clearhead"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "clearhead"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "clearhead"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "clearhead"


def test_the_catalogue_is_consistent() -> None:
    assert list(CATALOGUE) == ["smollm2", "minilm", "dates", "gemma3"]
    for entry in CATALOGUE.values():
        digests = [file.sha256 for file in entry.files]
        for wheel in entry.wheels:
            assert wheel.filename.startswith(wheel.project.replace("-", "_"))
            digests.append(wheel.sha256)
        for file in entry.files if entry.wheels else ():
            members = (file.member, *file.more_members)
            assert len(members) in (1, len(entry.wheels))
            endings = [""] if len(members) == 1 else [f".part{i:02}" for i in range(len(members))]
            for member, ending in zip(members, endings, strict=True):
                assert member.endswith(file.path + ending)
        assert (entry.wheel is None) == bool(entry.package_folder)
        assert entry.main in ("", *(file.path for file in entry.files))
        assert all(len(digest) == 64 and int(digest, 16) for digest in digests)


@pytest.mark.download
@pytest.mark.parametrize("name", [name for name in CATALOGUE if not CATALOGUE[name].terms])
def test_the_real_files_are_the_known_ones(name: str) -> None:
    """Of models that anybody may use: a test accepts no terms for the one who runs it."""
    store = ModelStore()
    store.pull(name)
    assert store.damaged(name) == {}
