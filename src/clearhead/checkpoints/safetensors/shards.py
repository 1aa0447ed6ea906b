"""A checkpoint in one or several safetensors files: the same interface for both."""

from __future__ import annotations

from pathlib import Path

import torch

from clearhead.checkpoints.safetensors.file import SafetensorsFile
from clearhead.checkpoints.safetensors.header import LONGEST_HEADER
from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"


class ShardedSafetensors:
    """Several safetensors files that an index (``model.safetensors.index.json``) joins."""

    def __init__(self, index: str | Path) -> None:
        self.path = Path(index)
        weight_map = _read_weight_map(self.path)
        shard_names = sorted(set(weight_map.values()))
        shards = {name: SafetensorsFile(self.path.parent / name) for name in shard_names}
        _check_agreement(self.path, weight_map, shards)
        self._home = {name: shards[shard] for name, shard in weight_map.items()}
        self.metadata: dict[str, str] = {}
        for shard in shards.values():
            self.metadata.update(shard.metadata)

    def names(self) -> list[str]:
        """Return every tensor's name, over all files."""
        return list(self._home)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor ``name``."""
        return self._file(name).shape(name)

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of tensor ``name``."""
        return self._file(name).dtype(name)

    def tensor(self, name: str) -> torch.Tensor:
        """Return tensor ``name``, memory-mapped from the file that holds it."""
        return self._file(name).tensor(name)

    def _file(self, name: str) -> SafetensorsFile:
        if name not in self._home:
            raise CheckpointError(f"{self.path} lists no tensor {name!r}.")
        return self._home[name]


def open_safetensors(path: str | Path) -> SafetensorsFile | ShardedSafetensors:
    """Open a ``.safetensors`` file, an index of several, or a folder that has either."""
    path = Path(path)
    if path.is_dir():
        index, single = path / INDEX_FILE, path / SINGLE_FILE
        if not index.exists() and not single.exists():
            raise CheckpointError(f"{path} has neither {SINGLE_FILE} nor {INDEX_FILE}.")
        path = single if single.exists() else index
    return ShardedSafetensors(path) if path.suffix == ".json" else SafetensorsFile(path)


def _read_weight_map(path: Path) -> dict[str, str]:
    index = read_json(path, wanted="safetensors index", largest=LONGEST_HEADER)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{path} is not a sound index: it has no weight_map.")
    for shard in set(map(str, weight_map.values())):
        _check_shard_name(path, shard)
    return {name: str(shard) for name, shard in weight_map.items()}


def _check_shard_name(index: Path, shard: str) -> None:
    # A bare file name has no separator of any system, no drive and no way up.
    if not shard.endswith(".safetensors") or any(sign in shard for sign in '/\\:\0"'):
        raise CheckpointError(
            f"{index} names the shard {shard[:80]!r}; wanted the name of a .safetensors file in "
            "the same folder. An index that points elsewhere is broken or hostile."
        )


def _check_agreement(
    index: Path, weight_map: dict[str, str], shards: dict[str, SafetensorsFile]
) -> None:
    faults = []
    held: dict[str, str] = {}
    for shard, file in shards.items():
        for name in file.names():
            if name in held:
                faults.append(f"{name!r} is in both {held[name]} and {shard}")
            elif weight_map.get(name) != shard:
                faults.append(f"{name!r} is in {shard}, but the index does not say so")
            held[name] = shard
    faults += [f"{name!r} is missing from {weight_map[name]}" for name in weight_map.keys() - held]
    if faults:
        lines = "".join(f"\n  {fault}" for fault in sorted(faults))
        raise CheckpointError(f"{index} and its files do not agree:{lines}")
