"""What each head does on a validation batch: three numbers, from a few exact rows of its map.

The kernels run as ever. After each attention call of the first validation batch, ``QUERIES``
queries of each sequence are computed once more, step by step, from the queries and keys that the
kernel had. That is exact for these rows, and a sample of all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clearhead.attention.call import Call
from clearhead.attention.steps import steps_of
from clearhead.models.config import ModelConfig

QUERIES = 8


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the sampled queries of one head; the largest score is the largest of all.

    ``first`` is the weight of the first token that a query can see: of its document, or of its
    window. Much of it there is an attention sink.
    """

    entropy: float  # of the weights, in bits
    score: float  # the largest one before the softmax
    first: float


@dataclass
class HeadObserver:
    """Takes the statistics of every attention call that it is told of, in order."""

    found: list[list[HeadStatistics]] = field(default_factory=list)

    @torch.no_grad()
    def __call__(self, call: Call, output: Tensor, logsum: Tensor | None) -> None:
        """One attention call."""
        del output, logsum
        rows = [_of_query(call, place) for place in _places(call.query.shape[2])]
        entropy = torch.stack([row[0] for row in rows]).mean(dim=(0, 1))
        score = torch.stack([row[1] for row in rows]).amax(dim=(0, 1))
        first = torch.stack([row[2] for row in rows]).mean(dim=(0, 1))
        numbers = zip(entropy.tolist(), score.tolist(), first.tolist(), strict=True)
        self.found.append([HeadStatistics(*one) for one in numbers])

    def by_name(self, config: ModelConfig) -> dict[str, HeadStatistics]:
        """The statistics of each head; E is an encoder's, C a cross-attention's."""
        names = list(_layer_names(config))
        if len(names) != len(self.found):
            return {}  # a model that attends in another way
        return {
            f"{name}H{head}": one
            for name, heads in zip(names, self.found, strict=True)
            for head, one in enumerate(heads)
        }


def _layer_names(config: ModelConfig) -> Iterator[str]:
    encoder = config.encoder_layers or 0 if config.kind == "encoder-decoder" else 0
    yield from (f"E{layer}" for layer in range(encoder))
    for layer in range(config.layers):
        yield f"L{layer}"
        if encoder:
            yield f"C{layer}"


def _places(queries: int) -> list[int]:
    """Some queries, from all over the text; the last one is among them."""
    count = min(QUERIES, queries)
    return sorted({round((number + 1) * queries / count) - 1 for number in range(count)})


def _of_query(call: Call, place: int) -> tuple[Tensor, Tensor, Tensor]:
    """Entropy, largest score and the weight on the first token; each (batch, head)."""
    steps = steps_of(call.narrowed(range(place, place + 1)))
    weights, masked = steps.weights[:, :, 0].float(), steps.masked[:, :, 0].float()
    entropy = -torch.special.xlogy(weights, weights).sum(-1) / torch.log(torch.tensor(2.0))
    seen = (masked > -torch.inf).to(torch.int8)
    first = weights.gather(-1, seen.argmax(-1, keepdim=True))[..., 0]
    score = torch.where(seen.any(-1), masked.amax(-1), 0.0)
    return entropy, score, first


def as_line(heads: Mapping[str, HeadStatistics]) -> dict[str, dict[str, float]]:
    """For the log: entropy, score and first of each head by its name."""
    return {name: dataclasses.asdict(one) for name, one in heads.items()}
