"""Heads are told from sequences by what the model does with them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of

BATCH, HEADS, ROWS, WIDTH = 2, 3, 5, 7


def softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1)


def usual(x: Tensor) -> Tensor:
    return (softmax(x @ x.mT) @ x).transpose(1, 2).flatten(2)


def batch_head(x: Tensor) -> Tensor:
    flat = x.flatten(0, 1)
    return (softmax(flat @ flat.mT) @ flat).view(BATCH, HEADS, ROWS, -1).transpose(1, 2).flatten(2)


def head_batch(x: Tensor) -> Tensor:
    flat = x.transpose(0, 1).flatten(0, 1)
    out = softmax(flat @ flat.mT) @ flat
    return out.view(HEADS, BATCH, ROWS, -1).permute(1, 2, 0, 3).flatten(2)


def einsum_heads_first(x: Tensor) -> Tensor:
    rows = x.transpose(1, 2)  # (batch, row, head, width)
    weights = softmax(torch.einsum("bqhd,bkhd->hbqk", rows, rows))
    return torch.einsum("hbqk,bkhd->bqhd", weights, rows).flatten(2)


def dots(x: Tensor) -> Tensor:
    weights = softmax(torch.einsum("...qd,...kd->...qk", x, x))
    return torch.einsum("...qk,...kd->...qd", weights, x).transpose(1, 2).flatten(2)


def one_by_one(x: Tensor) -> Tensor:
    heads = [softmax(x[:, head] @ x[:, head].mT) @ x[:, head] for head in range(HEADS)]
    return torch.cat(heads, dim=-1)


class Layer(nn.Module):
    def __init__(self, layout: str) -> None:
        super().__init__()
        self.layout = layout

    def forward(self, x: Tensor) -> Tensor:
        return LAYOUTS[self.layout](x)


LAYOUTS = {
    f.__name__: f for f in (usual, batch_head, head_batch, einsum_heads_first, dots, one_by_one)
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_layer(layout: str) -> None:
    torch.manual_seed(0)
    net, states = Layer(layout), torch.randn(BATCH, HEADS, ROWS, WIDTH)
    plain = net(states)
    with watch(net) as seen:
        watched = net(states)
    assert torch.equal(plain, watched)
    [record] = seen.records
    assert (weights_of(record) - softmax(states @ states.mT)).abs().max() < 1e-6
    assert seen.verify().exact and seen.missed == ""


@pytest.mark.parametrize("rows_first", [True, False])
def test_heads_on_the_axis_of_queries(rows_first: bool) -> None:
    class MultiQuery(nn.Module):
        def forward(self, x: Tensor, key: Tensor) -> Tensor:
            query = x.transpose(1, 2) if rows_first else x
            weights = softmax(query.flatten(1, 2) @ key.mT)
            out = (weights @ key).view(*query.shape)
            return (out if rows_first else out.transpose(1, 2)).flatten(2)

    torch.manual_seed(0)
    states, key = torch.randn(BATCH, HEADS, ROWS, WIDTH), torch.randn(BATCH, 11, WIDTH)
    with watch(net := MultiQuery()) as seen:
        net(states, key)
    expected = softmax(states @ key[:, None].mT)
    assert seen.layers[0].kv_heads == 1
    assert (weights_of(seen.records[0]) - expected).abs().max() < 1e-6


def test_what_stays_ambiguous_is_refused() -> None:
    class Unclear(nn.Module):
        num_heads = 3

        def forward(self, x: Tensor) -> Tensor:
            flat = x.flatten(0, 1)
            return softmax(flat @ flat.mT) @ flat

    with watch(net := Unclear()) as seen:
        net(torch.randn(BATCH, HEADS, ROWS, WIDTH))
    assert seen.layers == []
    assert "nothing tells its heads from its sequences" in seen.missed
