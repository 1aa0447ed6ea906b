"""Values, gradients and second derivatives over the whole grid of options.

They are compared with the textbook's formula, written here once more in float64 and
differentiated by autograd alone.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch

OPTIONS = ("causal", "window", "softcap", "bias", "sinks", "mask")
# batch, head, kv_head, query, key, key_dim, value_dim
SHORT, FEW_KEYS, LONG = (2, 4, 2, 5, 7, 3, 2), (1, 3, 3, 11, 3, 5, 5), (1, 2, 1, 201, 199, 5, 3)


def textbook(
    query: Tensor, key: Tensor, value: Tensor, *, scale: float | None = None, causal: bool = False,
    window: int | None = None, softcap: float | None = None, mask: Tensor | None = None,
    bias: Tensor | None = None, sinks: Tensor | None = None,
) -> Tensor:  # fmt: skip
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    queries, keys = query.shape[2], key.shape[2]
    scores = query @ key.mT * (query.shape[3] ** -0.5 if scale is None else scale)
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if bias is None else scores + bias
    place, other = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    seen = seen & (other <= place) if causal else seen
    if window is not None:
        first = place - window + 1 if causal else place - window // 2
        last = place if causal else place + (window - 1) // 2
        seen = seen & (other >= first) & (other <= last)
    powers = torch.where(seen, scores, -torch.inf).exp()
    total = powers.sum(-1, keepdim=True)
    total = total if sinks is None else total + sinks.exp()[:, None, None]
    return powers / torch.where(total > 0, total, 1.0) @ value


def call_of(
    sizes: tuple[int, ...], names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors that learn, and the other options."""
    batch, heads, kv_heads, queries, keys, key_dim, value_dim = sizes
    torch.manual_seed(len(names) + sizes[3])

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64).requires_grad_()

    learning = {
        "query": random(batch, heads, queries, key_dim),
        "key": random(batch, kv_heads, keys, key_dim),
        "value": random(batch, kv_heads, keys, value_dim),
    }
    options: dict[str, Any] = {"causal": "causal" in names}
    options |= {"window": keys // 2 + 1} if "window" in names else {}
    options |= {"softcap": 1.7} if "softcap" in names else {}
    options |= {"scale": -0.3} if "scale" in names else {}
    if "mask" in names:
        options["mask"] = torch.rand(batch, heads, queries, keys) > 0.3
        options["mask"][:, :, 0] = False
    learning |= {"bias": random(heads, queries, keys)} if "bias" in names else {}
    learning |= {"sinks": random(heads)} if "sinks" in names else {}
    return learning, options


def derivatives(function: Any, learning: dict[str, Any], options: dict[str, Any]) -> list[Tensor]:
    """The output, its gradients, and the gradients of a random mixture of those."""
    torch.manual_seed(7)
    output = function(**learning, **options)
    tensors = list(learning.values())
    mixed = (output * torch.randn_like(output)).sum()
    first = torch.autograd.grad(mixed, tensors, create_graph=True)
    again = torch.stack([(one * torch.randn_like(one)).sum() for one in first]).sum()
    second = torch.autograd.grad(again, tensors, allow_unused=True, materialize_grads=True)
    return [output, *first, *second]


@pytest.mark.parametrize("sizes", [SHORT, FEW_KEYS, LONG], ids=["short", "few keys", "long"])
@pytest.mark.usefixtures("unchecked")
def test_the_whole_grid(sizes: tuple[int, ...]) -> None:
    grid = [names for r in range(7) for names in itertools.combinations(OPTIONS, r)]
    for names in [*grid, ("scale",), ("scale", "causal"), ("scale", "causal", "sinks", "bias")]:
        learning, options = call_of(sizes, names)
        found = derivatives(ch.attention, learning, options)
        for got, wanted in zip(found, derivatives(textbook, learning, options), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9, msg=str((names, sizes)))
