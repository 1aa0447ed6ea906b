from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from clearhead.trace.watching.doors import flex
from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of

SLOPES = torch.tensor([0.5, 0.25, 0.1, 0.3])
DISTANCE = torch.arange(7) - torch.arange(5)[:, None]
STYLES: dict[str, tuple[Callable[..., Any], Callable[[Tensor], Tensor]]] = {
    "plain": (lambda s, b, h, i, j: s, lambda s: s),
    "ALiBi": (
        lambda s, b, h, i, j: s + SLOPES[h] * (j - i),
        lambda s: s + SLOPES[:, None, None] * DISTANCE,
    ),
    "cap": (lambda s, b, h, i, j: 2 * torch.tanh(s / 2), lambda s: 2 * torch.tanh(s / 2)),
}
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


class Flexed(nn.Module):
    def __init__(self, change: Callable[..., Any], grouped: bool) -> None:
        super().__init__()
        self.change, self.grouped = change, grouped

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        seen = create_block_mask(lambda b, h, i, j: j <= i + 2, None, None, 5, 7, "cpu")
        output = flex_attention(query, key, value, self.change, seen, enable_gqa=self.grouped)
        assert isinstance(output, Tensor)
        return output


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("style", STYLES)
def test_scores_that_a_function_changes(style: str, grouped: bool) -> None:
    torch.manual_seed(0)
    change, plainly = STYLES[style]
    net, heads = Flexed(change, grouped), 2 if grouped else 4
    query, key, value = (torch.randn(2, h, n, 8) for h, n in ((4, 5), (heads, 7), (heads, 7)))
    with torch.no_grad():
        plain = net(query, key, value)
        with watch(net) as seen:
            assert torch.equal(net(query, key, value), plain)
    shared = key.repeat_interleave(4 // heads, dim=1)
    scores = plainly(query @ shared.mT / 8**0.5).masked_fill(DISTANCE > 2, -torch.inf)
    assert seen.missed == "" and seen.verify().exact
    assert (weights_of(seen.records[0]) - torch.softmax(scores, -1)).abs().max() < 1e-6
    assert ("as the model computed" in seen.layers[0].note) is (style == "cap")


def test_maps_that_are_too_large_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flex, "MOST_SPELLED", 100)
    parts = [torch.randn(1, 4, n, 8) for n in (5, 7, 7)]
    with torch.no_grad(), watch(net := Flexed(STYLES["plain"][0], False)) as seen:
        net(*parts)
    assert seen.layers == [] and "140 weights, made by functions of its own" in seen.missed
