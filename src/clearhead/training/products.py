"""float32 products of a training step by oneDNN, where torch's MKL holds back.

torch multiplies float32 matrices with MKL, which uses half of what an AMD processor with AVX-512
can do. oneDNN, the other library inside torch, does not hold back: 1,024 rows of 128 to 512 ran at
231 instead of 103 GFLOP/s on one core. torch takes it where it may round to bfloat16 on the way.
Only a processor with AMX does round then, so there the setting stays as it is; elsewhere the
products are float32's, term by term.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_inside = 0  # runs in several threads: the setting is one of the whole process
_before = ""


@contextmanager
def quick_products() -> Iterator[None]:
    """Inside, float32 products run in oneDNN if that is quicker and as exact."""
    if not onednn_is_quicker() or not torch.backends.mkldnn.enabled:
        yield
        return
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _inside, _before
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    with _lock:
        _inside += 1
        if _inside == 1:
            _before, matmul.fp32_precision = matmul.fp32_precision, "bf16"


def _end() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            torch.backends.mkldnn.matmul.fp32_precision = _before  # type: ignore[attr-defined]


def onednn_is_quicker() -> bool:
    """True on a processor with AVX-512's bfloat16 and without AMX."""
    quick = torch.cpu._is_avx512_bf16_supported() and not torch.cpu._is_amx_tile_supported()
    return bool(quick and torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
