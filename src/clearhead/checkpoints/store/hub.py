"""Models from the hub (``org/name``), through ``huggingface_hub`` and into its own cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from clearhead.checkpoints.store.wheel import Progress
from clearhead.errors import MissingExtraError, StoreError

_HUB_ID = re.compile(r"(?P<repository>[\w-][\w.-]*/[\w-][\w.-]*)(/(?P<file>[\w./-]+\.gguf))?")

SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "source.spm",
    "target.spm",
    "spiece.model",
    "tokenizer.model",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "model.safetensors.index.json",
)
"""Files that are fetched beside the weights; none can carry code or pickles."""


def is_hub_id(name: str) -> bool:
    """Return whether ``name`` reads like ``org/name`` or ``org/name/file.gguf``."""
    match = _HUB_ID.fullmatch(name)
    return match is not None and ".." not in name


def fetch_from_hub(name: str, progress: Progress | None = None) -> Path:
    """Fetch ``org/name`` (or one GGUF file of it); return the folder or file to load.

    What the hub's cache has already is not fetched again; offline, the cache alone serves.
    """
    match = _HUB_ID.fullmatch(name)
    if match is None or ".." in name:
        raise StoreError(f"{name!r} is not a hub id; wanted org/name or org/name/file.gguf.")
    repository, file = match["repository"], match["file"]
    hub = _hub()
    try:
        sizes = _listing(hub, repository)
    except _OfflineError as error:
        return _from_cache(hub, repository, file, error)
    chosen = choose_files(repository, list(sizes), file)
    paths = _download(hub, repository, {path: sizes[path] for path in chosen}, progress)
    return paths[chosen.index(file)] if file else _root(paths[0], chosen[0])


def choose_files(repository: str, listing: Sequence[str], file: str | None = None) -> list[str]:
    """Choose what to fetch: one GGUF file, or safetensors, and the small files beside them."""
    small = [path for path in listing if path in SMALL_FILES]
    if file is not None:
        if file not in listing:
            raise StoreError(f"{repository} on the hub has no file {file!r}.")
        return [file, *small]
    weights = [path for path in listing if fnmatch(path, "model*.safetensors") and "/" not in path]
    if weights:
        return [*weights, *small]
    return [_only_gguf(repository, listing), *small]


def _only_gguf(repository: str, listing: Sequence[str]) -> str:
    found = [path for path in listing if path.endswith(".gguf")]
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreError(
            f"{repository} has {len(found)} GGUF files: {', '.join(found)}.",
            hint=f"say which one, for example {repository}/{found[0]}",
        )
    pickles = any(path.endswith((".bin", ".pt", ".pth", ".ckpt")) for path in listing)
    raise StoreError(
        f"{repository} has neither model.safetensors nor a GGUF file"
        + (", only pickles, which can run code and are never loaded." if pickles else "."),
        hint="look for a conversion of this model to safetensors or GGUF.",
    )


class _OfflineError(Exception):
    """The hub did not answer."""


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtraError("a model from the hub", "hub") from error
    return huggingface_hub


def _listing(hub: Any, repository: str) -> dict[str, int]:
    """Return the files of ``repository`` and their sizes."""
    try:
        info = hub.HfApi().model_info(repository, files_metadata=True)
    except hub.errors.GatedRepoError as error:
        raise StoreError(
            f"{repository} is on the hub, but its owner wants you to ask for access.",
            hint="ask on the model's page, then run: hf auth login",
        ) from error
    except hub.errors.RepositoryNotFoundError as error:
        raise StoreError(
            f"there is no model {repository!r} on the hub (or it is private).",
            hint="check the spelling; for a path on this machine, check that it exists.",
        ) from error
    except Exception as error:  # whichever HTTP library the hub's client uses has its own tree
        raise _OfflineError(str(error)) from error
    return {sibling.rfilename: sibling.size or 0 for sibling in info.siblings}


def _from_cache(hub: Any, repository: str, file: str | None, offline: _OfflineError) -> Path:
    try:
        folder = Path(hub.snapshot_download(repository, local_files_only=True))
    except Exception as error:
        raise _unreachable(repository, offline) from error
    if file is not None and not (folder / file).exists():
        raise _unreachable(f"{repository}/{file}", offline)
    return folder / file if file else folder


def _unreachable(what: str, error: Exception) -> StoreError:
    return StoreError(
        f"{what} is not on this machine, and the hub did not answer: {str(error)[:300]}",
        hint="when online, try again; or copy the model's folder here and give its path.",
    )


def _download(
    hub: Any, repository: str, sizes: dict[str, int], progress: Progress | None
) -> list[Path]:
    paths = []
    total, done = sum(sizes.values()), 0
    for path, size in sizes.items():
        bar = _bar(progress, done, total, path)
        try:
            paths.append(Path(hub.hf_hub_download(repository, path, tqdm_class=bar)))
        except Exception as error:
            raise StoreError(
                f"{path} of {repository} could not be fetched: {str(error)[:300]}",
                hint="is the disk full, or the connection broken? What has arrived is kept.",
            ) from error
        done += size
    return paths


def _bar(progress: Progress | None, done: int, total: int, what: str) -> type[Any]:
    """Return a class in the place of the hub's progress bar that calls ``progress`` instead."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})
            self.arrived = done + int(options.get("initial", 0))

        def update(self, n: float | None = 1) -> None:
            self.arrived += int(n or 0)
            if progress is not None:
                progress(min(self.arrived, total), total, what)

    return Bar


def _root(path: Path, relative: str) -> Path:
    """Return the snapshot's folder, given one file in it and that file's path below it."""
    return path.parents[len(Path(relative).parts) - 1]
