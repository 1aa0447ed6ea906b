from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.interventions.every_head import rows_of, states_without_each
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_first_row_is_the_model_as_it_is() -> None:
    loaded = random_decoder()
    assert isinstance(loaded.model, ch.Decoder)
    stack, ids, steps = loaded.model.stack, token_ids(1, 7), []
    with torch.no_grad():
        names, states = states_without_each(
            stack, stack.begin(ids), 6, lambda done, total: steps.append((done, total))
        )
        whole = stack(ids)[0, 6]
    assert torch.allclose(states[0], whole, atol=1e-5)
    assert len(states) == rows_of(stack) == 1 + len(names) == 22
    assert names[:7] == [*(f"L0H{head}" for head in range(6)), "L0F"]
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert not any(module._forward_pre_hooks for module in stack.modules())
