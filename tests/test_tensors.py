"""Checks of tensors, devices and number formats that are arguments."""

from __future__ import annotations

import pytest
import torch

from clearhead import tensors
from clearhead.errors import InputError, ShapeError

pytestmark = pytest.mark.usefixtures("unchecked")
IDS = torch.tensor([[3, 5, 7], [11, 13, 17]])


def test_a_dense_tensor_comes_back_as_it_is() -> None:
    assert tensors.dense_tensor("states", IDS) is IDS
    with pytest.raises(InputError, match="states must be a torch tensor; got list"):
        tensors.dense_tensor("states", [1])
    with pytest.raises(InputError, match=r"must be a dense tensor; got torch\.sparse_coo"):
        tensors.dense_tensor("states", torch.eye(3).to_sparse())


def test_token_ids() -> None:
    assert tensors.token_ids("ids", IDS.int()).dtype == torch.int32
    with pytest.raises(ShapeError, match=r"got \(3,\)\.\nHint: one text needs .*: ids\[None\]"):
        tensors.token_ids("ids", IDS[0])
    with pytest.raises(InputError, match=r"whole numbers \(torch\.int64\); got torch\.float32"):
        tensors.token_ids("ids", IDS.float())


def test_numbers_and_flags_of_tokens() -> None:
    segments = torch.tensor([[0, 1, 1], [0, 0, 2]])
    assert tensors.token_numbers("segments", segments, IDS, count=3) is segments
    with pytest.raises(InputError, match="segments must be whole numbers from 0 to 1; got 2"):
        tensors.token_numbers("segments", segments, IDS, count=2)
    with pytest.raises(InputError, match="from 0 to 2; got -1"):
        tensors.token_numbers("segments", segments - 1, IDS, count=3)
    with pytest.raises(ShapeError, match=r"each token, \(2, 3\); got \(2, 2\)"):
        tensors.token_flags("real", torch.ones(2, 2, dtype=torch.bool), IDS)
    with pytest.raises(InputError, match="real must be boolean"):
        tensors.token_flags("real", torch.ones(2, 3), IDS)


def test_a_number_for_each_row() -> None:
    counts = torch.tensor([2, 3])
    assert tensors.row_numbers("counts", counts, rows=2, most=3) is counts
    with pytest.raises(ShapeError, match=r"one number for each row, \(3,\); got \(2,\)"):
        tensors.row_numbers("counts", counts, rows=3)
    with pytest.raises(InputError, match="counts must be 0 to 2; got 3"):
        tensors.row_numbers("counts", counts, most=2)
    with pytest.raises(InputError, match="counts must be 1 or more; got 0"):
        tensors.row_numbers("counts", counts * 0, least=1)
    with pytest.raises(InputError, match="known; got a meta tensor"):
        tensors.row_numbers("counts", counts.to("meta"))


def test_devices() -> None:
    assert tensors.device_of("device", "cpu") == torch.device("cpu")
    assert tensors.device_of("device", torch.device("meta"), meta=True).type == "meta"
    with pytest.raises(InputError, match="nothing can be computed on the meta device"):
        tensors.device_of("device", "meta")
    with pytest.raises(InputError, match="device: there is no device 'xyz'"):
        tensors.device_of("device", "xyz")
    with pytest.raises(InputError, match='device must be a device such as "cpu"; got 3'):
        tensors.device_of("device", 3)
    with pytest.raises(InputError, match="ids must be on meta, as the rest is; got cpu"):
        tensors.same_device("ids", IDS, torch.device("meta"))


def test_number_formats() -> None:
    assert tensors.float_type("dtype", torch.bfloat16) is torch.bfloat16
    with pytest.raises(InputError, match=r"such as torch\.float32; got torch\.int64"):
        tensors.float_type("dtype", torch.int64)
    with pytest.raises(InputError, match="got 'float32'"):
        tensors.float_type("dtype", "float32")


def test_numbers_are_not_asked_while_torch_records() -> None:
    checked = torch.vmap(lambda row: _checked(row))(IDS)
    assert checked.tolist() == IDS.tolist()
    assert not tensors.recorded()


def _checked(row: torch.Tensor) -> torch.Tensor:
    assert tensors.recorded()
    tensors.within("row", row, 2)
    return row
