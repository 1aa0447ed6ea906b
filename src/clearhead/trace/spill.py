"""Storage of recorded tensors: memory, and beyond a limit memory-mapped files on the disk.

A mapped tensor is used like any other; the system reads its pages when somebody looks and drops
them when memory gets tight. The folder is removed when the spill is closed, or collected.
"""

from __future__ import annotations

import functools
import mmap
import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path

import torch
from torch import Tensor

from clearhead.errors import InputError, StoreError

SHARE_OF_MEMORY = 4  # a quarter of the machine's memory may hold what was seen
DEFAULT_LIMIT = 2 << 30  # bytes, where the system does not report its memory
LEAST_FREE_DISK = 1 << 30  # bytes that stay free for everybody else
# A tensor of so many bytes, and after it all but the smallest, is copied out of the heap even if it
# is ours: between a model's temporaries it would leave holes too small for the next ones. SmolLM2
# in transformers over 8,192 tokens, alone in a process, asked for 1.6 million pages anew.
LARGE, SMALL = 4 << 20, 64 << 10


class Spill:
    """Keeps tensors, the first ``limit`` bytes in memory and the rest in files.

    >>> spill = Spill(limit=0)
    >>> kept = spill.keep(torch.arange(3.0))
    >>> kept.tolist(), spill.on_disk
    ([0.0, 1.0, 2.0], 12)
    >>> spill.close()
    """

    def __init__(self, limit: int | None = None, folder: str | Path | None = None) -> None:
        if limit is not None and limit < 0:
            raise InputError(f"the limit counts bytes and must be 0 or more; got {limit}.")
        self.limit = _share_of_memory() if limit is None else limit
        self.in_memory = 0
        self._has_large = False
        self.on_disk = 0
        self._parent = None if folder is None else str(folder)
        self.folder: Path | None = None
        self._files = 0
        self._remove: weakref.finalize[..., Spill] | None = None

    def keep(self, tensor: Tensor, *, owned: bool = False) -> Tensor:
        """The same numbers, safe from later changes: a copy in memory, or in a file beyond it.

        ``owned``: nobody else will change the tensor, so in memory only a large one needs a copy.
        """
        tensor = tensor.detach()
        if self.in_memory + tensor.nbytes <= self.limit or tensor.numel() == 0:
            self.in_memory += tensor.nbytes
            self._has_large = self._has_large or tensor.nbytes >= LARGE
            if self._has_large and tensor.nbytes >= SMALL and tensor.device.type == "cpu":
                return _outside_heap(tensor.shape, tensor.dtype).copy_(tensor)
            return tensor if owned else tensor.clone(memory_format=torch.contiguous_format)
        mapped = self._mapped(tensor)
        self.on_disk += tensor.nbytes
        return mapped

    def close(self) -> None:
        """Remove the files. Tensors that are still in use stay readable where the system allows."""
        if self._remove is not None:
            self._remove()
        self.folder = self._remove = None

    def _mapped(self, tensor: Tensor) -> Tensor:
        folder = self._ready_folder(tensor.nbytes)
        path = folder / f"{self._files}.bin"
        self._files += 1
        try:
            mapped = torch.from_file(
                str(path), shared=True, size=tensor.numel(), dtype=tensor.dtype
            ).view(tensor.shape)
        except (RuntimeError, OSError) as error:
            raise StoreError(
                f"{tensor.nbytes:,} bytes of what was seen cannot be written to {folder}: {error}",
                hint="watch fewer layers, or set TMPDIR to a larger disk.",
            ) from error
        return mapped.copy_(tensor)

    def _ready_folder(self, wanted: int) -> Path:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="clearhead-trace-", dir=self._parent))
            self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        # A mapped file that outgrows the disk ends the process: ask before writing.
        free = shutil.disk_usage(self.folder).free
        if free < wanted + LEAST_FREE_DISK:
            raise StoreError(
                f"{wanted:,} bytes of what was seen do not fit on the disk of {self.folder} "
                f"({free:,} bytes free).",
                hint="watch fewer layers, or set TMPDIR to a larger disk.",
            )
        return self.folder


def _outside_heap(shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Memory straight from the system, which goes back to it with the tensor."""
    if sys.platform != "linux":
        return torch.empty(shape, dtype=dtype)
    size = shape.numel() * dtype.itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=dtype).view(shape)


@functools.cache
def _share_of_memory() -> int:
    if not hasattr(os, "sysconf"):
        return DEFAULT_LIMIT
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // SHARE_OF_MEMORY
