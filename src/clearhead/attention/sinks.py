"""Sinks: a logit for each head that joins the softmax's denominator, and nothing else."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def with_sinks(
    output: Float[Tensor, "batch head query value_dim"],
    logsum: Float[Tensor, "batch head query"],
    sinks: Float[Tensor, " head"] | None,
) -> tuple[Tensor, Tensor]:
    """Attention without sinks, given them: its output, in place, and the log-sum-exp with them."""
    if sinks is None:
        return output, logsum
    total = torch.logaddexp(logsum, sinks.to(logsum.dtype)[:, None])
    output *= torch.exp(logsum - total).unsqueeze(-1)
    return output, total


def sink_gradient(
    gradient: Float[Tensor, "batch head query value_dim"],
    output: Float[Tensor, "batch head query value_dim"],
    total: Float[Tensor, "batch head query"],
    sinks: Float[Tensor, " head"],
) -> Float[Tensor, " head"]:
    """The gradient of the sinks; ``total`` is the log-sum-exp with them."""
    share = torch.exp(sinks[:, None] - total)  # of the sink, in each query's denominator
    return -(share * (gradient * output).sum(-1)).sum((0, 2)).to(sinks.dtype)
