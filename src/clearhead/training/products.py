"""float32 products of a training step by oneDNN, where torch's MKL holds back.

torch multiplies float32 matrices with MKL, which uses half of what an AMD processor with AVX-512
can do. oneDNN, the other library inside torch, does not hold back: 1,024 rows of 128 to 512 ran at
231 instead of 103 GFLOP/s on one core. torch takes it where it may round to bfloat16 on the way.
Only a processor with AMX does round then, so there the setting stays as it is; elsewhere the
products are float32's, term by term.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def quick_products() -> Iterator[None]:
    """Inside, float32 products run in oneDNN if that is quicker and as exact."""
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    if not onednn_is_quicker() or not torch.backends.mkldnn.enabled:
        yield
        return
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def onednn_is_quicker() -> bool:
    """True on a processor with AVX-512's bfloat16 and without AMX."""
    quick = torch.cpu._is_avx512_bf16_supported() and not torch.cpu._is_amx_tile_supported()
    return bool(quick and torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
