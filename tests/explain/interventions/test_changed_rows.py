"""Rows that are changed in batches, against one run for each change with hooks by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.explain.interventions import changed_rows
from clearhead.explain.interventions.changed_rows import RowChange, changed_states, recorded
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")
CHANGES = [
    RowChange(2, "state", positions=(1, 4)),
    RowChange(1, "heads", slice(20, 30)),
    RowChange(0, "feed-forward", positions=(3,)),
    RowChange(0, "state"),
    RowChange(1, "attention", positions=(2,)),
    RowChange(2, "heads", slice(0, 10), (6,)),
    RowChange(1, "feed-forward"),
]


def by_hand(stack: Any, ids: Tensor, donor: Tensor, change: RowChange) -> Tensor:
    """Two runs: one that keeps the donor's output, one that uses it."""
    block = stack.blocks[change.layer]
    module = {
        "state": block, "heads": block.attention.output, "attention": block.attention,
        "feed-forward": block.feed_forward,
    }[change.part]  # fmt: skip
    where = slice(None) if change.positions is None else list(change.positions)
    kept: list[Tensor] = []

    def before(_module: Any, args: Any) -> Any:
        if not kept:
            kept.append(args[0].clone())
            return None
        changed = args[0].clone()
        changed[:, where, change.columns or slice(None)] = kept[0][
            :, where, change.columns or slice(None)
        ]
        return (changed,)

    def behind(_module: Any, _args: Any, output: Tensor) -> Any:
        if not kept:
            kept.append(output.clone())
            return None
        changed = output.clone()
        changed[:, where] = kept[0][:, where]
        return changed

    heads = change.part == "heads"
    handle = (
        module.register_forward_pre_hook(before) if heads else module.register_forward_hook(behind)
    )
    stack(donor)
    found: Tensor = stack(ids)[0, 6]
    handle.remove()
    return found


@pytest.mark.parametrize("tokens", [7, 14, 4096])
def test_each_row_is_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    monkeypatch.setattr(changed_rows, "TOKENS", tokens)
    loaded = random_decoder()
    assert isinstance(loaded.model, ch.Decoder)
    stack, ids = loaded.model.stack, token_ids(1, 7)
    donor = ids.roll(1, 1)
    steps: list[tuple[int, int]] = []
    with torch.no_grad():
        found = changed_states(
            stack, stack.begin(ids), CHANGES, recorded(stack, stack.begin(donor)), 6,
            lambda done, total: steps.append((done, total)),
        )  # fmt: skip
        assert torch.allclose(found[0], stack(ids)[0, 6], atol=1e-5)
        for row, change in zip(found[1:], CHANGES, strict=True):
            assert torch.allclose(row, by_hand(stack, ids, donor, change), atol=2e-5), change
    assert steps[-1][0] == steps[-1][1] == len(steps)
    assert not any(module._forward_hooks for module in stack.modules())


def test_a_state_behind_the_last_layer_is_the_donors() -> None:
    loaded = random_decoder()
    assert isinstance(loaded.model, ch.Decoder)
    stack, ids = loaded.model.stack, token_ids(1, 7)
    donor = ids.roll(1, 1)
    with torch.no_grad():
        found = changed_states(
            stack, stack.begin(ids), [RowChange(2, "state", positions=(6,))],
            recorded(stack, stack.begin(donor)), 6,
        )  # fmt: skip
        assert torch.allclose(found[1], stack(donor)[0, 6], atol=1e-5)
