"""The files of a stored model are checked against their SHA-256 while they are loaded.

Always, and not only when a file's date has changed: a bit that a disk or a copy flipped changes no
date. A second thread computes the hashes, without Python's lock, at more than a gigabyte a second;
loading takes longer, so nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.errors import ClearheadError, StoreError


@contextmanager
def files_checked(path: Path, store: ModelStore | None = None) -> Iterator[None]:
    """Load what is at ``path`` inside the block; at its end the files are known to be sound.

    Paths that do not belong to a model of the store have no known hash, and nothing is checked.

    Raises:
        StoreError: a file is not the one that was fetched; also if loading it failed for that.
    """
    store = ModelStore() if store is None else store
    name = store.name_of(path)
    if name is None:
        yield
        return
    with ThreadPoolExecutor(1, thread_name_prefix="clearhead-check") as thread:
        faults = thread.submit(store.damaged, name)
        try:
            yield
        except ClearheadError as error:
            _refuse(store, name, faults.result(), error)
            raise
        _refuse(store, name, faults.result())


def _refuse(
    store: ModelStore, name: str, faults: dict[str, str], cause: Exception | None = None
) -> None:
    faults = {path: fault for path, fault in faults.items() if not path.endswith(".md")}
    if not faults:
        return
    fetched = store.entry(name).package_folder is None
    raise StoreError(
        f"the files of {name} in {store.folder_of(name)} are damaged: "
        + "; ".join(f"{path}: {fault}" for path, fault in faults.items())
        + ".",
        hint=f"fetch them again: clearhead models pull {name}"
        if fetched
        else "reinstall clearhead.",
    ) from cause
