from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.errors import InputError, ShapeError
from clearhead.models.padding import Padding

IDS = torch.tensor([[11, 12, 13, 14, 15], [21, 22, 23, 24, 25], [31, 32, 33, 34, 35]])


def flags(*rows: str) -> torch.Tensor:
    return torch.tensor([[sign == "1" for sign in row] for row in rows])


def test_no_padding_is_none() -> None:
    assert Padding.of(None, IDS) is None
    assert Padding.of(torch.ones(3, 5).bool(), IDS) is None


def test_padding_on_the_right_stays_where_it_is() -> None:
    padding = Padding.of(flags("11100", "11110", "10000"), IDS)
    assert padding is not None
    assert padding.counts.tolist() == [3, 4, 1]
    assert padding.order is None
    assert torch.equal(padding.pack(IDS), IDS[:, :4])


def test_padding_on_the_left_moves() -> None:
    padding = Padding.of(flags("00111", "01111", "00001"), IDS)
    assert padding is not None
    packed = padding.pack(IDS)
    assert packed[0, :3].tolist() == [13, 14, 15]
    assert packed[1].tolist() == [22, 23, 24, 25]
    assert packed[2, 0] == 35
    states = packed[..., None].float()
    assert padding.last(states)[:, 0, 0].tolist() == [15.0, 25.0, 35.0]


@given(
    st.lists(st.lists(st.booleans(), min_size=7, max_size=7).filter(any), min_size=1, max_size=5)
)
def test_unpacking_undoes_packing(rows: list[list[bool]]) -> None:
    real = torch.tensor(rows)
    ids = torch.arange(real.numel()).view(real.shape)
    padding = Padding.of(real, ids)
    if padding is None:
        assert real.all()
        return
    packed = padding.pack(ids)
    assert packed.shape[1] == int(real.sum(1).max())
    for row, count in enumerate(padding.counts.tolist()):
        assert packed[row, :count].tolist() == ids[row][real[row]].tolist()
    back = padding.unpack(packed[..., None].float())
    assert torch.equal(back[..., 0][real], ids[real].float())


def test_gradients_pass_through() -> None:
    real = flags("00111", "01110", "00001")
    padding = Padding.of(real, IDS)
    assert padding is not None
    with torch.enable_grad():
        states = torch.randn(3, 3, 2, requires_grad=True)
        (padding.unpack(states) * real[..., None]).sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    counts = torch.tensor([3, 3, 1])
    wanted = (torch.arange(3) < counts[:, None])[..., None].expand(3, 3, 2).float()
    assert torch.equal(states.grad, wanted)


def test_a_row_without_tokens_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"at least one real token; rows \[0, 2\] of real have none"
    ):
        Padding.of(flags("00000", "01110", "00000"), IDS)


def test_flags_must_fit(unchecked: None) -> None:
    with pytest.raises(ShapeError, match=r"entry for each token, \(3, 5\); got \(3, 4\)"):
        Padding.of(flags("0011", "0111", "0001"), IDS)
    with pytest.raises(InputError, match=r"needs \.bool\(\)"):
        Padding.of(torch.ones(3, 5), IDS)
