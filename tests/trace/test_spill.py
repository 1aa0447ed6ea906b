"""Kept in memory up to a limit, in mapped files beyond it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch

from clearhead.errors import InputError, StoreError
from clearhead.trace import spill as spill_module
from clearhead.trace.spill import Spill


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.bool])
def test_beyond_the_limit_tensors_live_in_files(tmp_path: Path, dtype: torch.dtype) -> None:
    spill = Spill(limit=100, folder=tmp_path)
    first = spill.keep(torch.ones(3, 5, dtype=dtype).T[:2])
    assert spill.on_disk == 0 and not list(tmp_path.iterdir())
    large = torch.randn(7, 11, 13).to(dtype)
    kept = spill.keep(large.transpose(0, 2))
    assert torch.equal(kept, large.transpose(0, 2)) and kept.dtype == dtype
    assert spill.in_memory == first.nbytes and spill.on_disk == large.nbytes
    large.zero_()
    assert kept.any()
    assert len(list(tmp_path.rglob("*.bin"))) == 1


def test_a_copy_is_made_unless_the_tensor_is_owned() -> None:
    spill, tensor = Spill(limit=1000), torch.ones(3)
    assert spill.keep(tensor).data_ptr() != tensor.data_ptr()
    assert spill.keep(tensor, owned=True).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_tensors_are_copied_even_if_owned(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill_module, "LARGE", 300)
    monkeypatch.setattr(spill_module, "SMALL", 100)
    spill, tensor = Spill(limit=10_000), torch.randn(3, 5, 11).to(dtype).transpose(0, 2)
    middling, small = torch.ones(30), torch.ones(20)
    assert spill.keep(middling, owned=True).data_ptr() == middling.data_ptr()  # none large yet
    kept = spill.keep(tensor, owned=True)
    assert kept.data_ptr() != tensor.data_ptr() and kept.is_contiguous()
    assert torch.equal(kept, tensor) and kept.dtype == dtype
    assert spill.in_memory == tensor.nbytes + middling.nbytes and spill.on_disk == 0
    assert spill.keep(middling, owned=True).data_ptr() != middling.data_ptr()
    assert spill.keep(small, owned=True).data_ptr() == small.data_ptr()
    gc.collect()
    tensor.zero_()
    assert kept.abs().sum() > 0  # its pages live as long as it does


def test_files_go_when_the_spill_goes(tmp_path: Path) -> None:
    spill = Spill(limit=0, folder=tmp_path)
    kept = spill.keep(torch.arange(5.0))
    assert list(tmp_path.iterdir())
    del spill
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert kept.sum() == 10  # still mapped


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    spill = Spill(limit=0, folder=tmp_path)
    spill.keep(torch.ones(2))
    spill.close()
    spill.close()
    assert not list(tmp_path.iterdir())
    spill.keep(torch.ones(2))
    assert len(list(tmp_path.iterdir())) == 1


def test_the_limit_is_a_share_of_the_memory() -> None:
    assert 1 << 26 < Spill().limit < 1 << 44
    with pytest.raises(InputError, match="must be 0 or more; got -1"):
        Spill(limit=-1)


def test_a_full_disk_is_told_before_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_module, "LEAST_FREE_DISK", 1 << 60)
    with pytest.raises(StoreError, match=r"do not fit on the disk of(.|\n)*TMPDIR"):
        Spill(limit=0).keep(torch.ones(2))
