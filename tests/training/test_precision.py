"""Mixed precision: only where the hardware has it, and only where it pays."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training import precision
from clearhead.training.precision import WIDE_ENOUGH, has_bfloat16, mixed_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("has", [True, False])
def test_where_it_pays(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: has)
    wide = mixed_precision("auto", CPU, WIDE_ENOUGH)
    assert isinstance(wide, torch.autocast if has else nullcontext)
    assert isinstance(mixed_precision("auto", CPU, WIDE_ENOUGH - 1), nullcontext)
    assert isinstance(mixed_precision("float32", CPU, WIDE_ENOUGH), nullcontext)
    if has:
        assert isinstance(mixed_precision("bfloat16", CPU, 1), torch.autocast)
    else:
        with pytest.raises(InputError, match="no bfloat16 instructions"):
            mixed_precision("bfloat16", CPU, WIDE_ENOUGH)


def test_a_device_without_it() -> None:
    assert not has_bfloat16(torch.device("meta"))
