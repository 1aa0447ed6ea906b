"""Output heads: hidden states in, logits or embeddings out."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from clearhead.layers.dropout import drop
from clearhead.layers.feed_forward import ACTIVATIONS
from clearhead.models.config import ModelConfig


class LanguageHead(nn.Module):
    """Language-model head: logits = states · Wᵀ; W may be the token embedding itself (tied)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.scale, self.softcap = config.output_scale, config.output_softcap
        self.weight = None
        if not config.tied:
            rows = torch.empty(config.vocab, config.model).normal_(std=config.model**-0.5)
            self.weight = nn.Parameter(rows)
        self.bias = nn.Parameter(torch.zeros(config.vocab)) if config.output_bias else None

    def forward(
        self,
        states: Float[Tensor, "batch query model"],
        embedding: Float[Tensor, "vocab model"],
    ) -> Float[Tensor, "batch query vocab"]:
        """The logits; ``embedding`` serves as W where the two are tied."""
        if self.scale != 1.0:
            states = states * self.scale
        weight = embedding if self.weight is None else self.weight
        logits = functional.linear(states, weight, self.bias)
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return logits


class MaskedHead(nn.Module):
    """BERT's masked-token head: dense, activation, norm, then the vocabulary (Devlin 2019)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.model, config.model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = nn.LayerNorm(config.model, eps=config.norm_epsilon)
        self.vocabulary = LanguageHead(config.changed(output_bias=True))

    def forward(
        self, states: Float[Tensor, "batch query model"], embedding: Float[Tensor, "vocab model"]
    ) -> Float[Tensor, "batch query vocab"]:
        """For each position the logits of the token that could stand there."""
        states = self.norm(self.activation(self.dense(states)))
        return self.vocabulary(states, embedding)  # type: ignore[no-any-return]


class EmbeddingHead(nn.Module):
    """One vector for a text: the mean of its states, brought to length 1 (``unit``)."""

    def __init__(self, *, unit: bool = True) -> None:
        super().__init__()
        self.unit = unit

    def forward(
        self,
        states: Float[Tensor, "batch query model"],
        counts: Int[Tensor, " batch"] | None,
    ) -> Float[Tensor, "batch model"]:
        """The mean over each row's real tokens (packed in front)."""
        if counts is None:
            mean = states.mean(dim=1)
        else:
            real = torch.arange(states.shape[1], device=states.device) < counts[:, None]
            mean = (states * real[..., None]).sum(dim=1) / counts[:, None]
        return functional.normalize(mean, dim=-1) if self.unit else mean


class ClassificationHead(nn.Module):
    """Labels from the first hidden state of an encoder: dense, tanh or ReLU, dropout, linear."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.model, config.model)
        self.activation = torch.tanh if config.classifier == "tanh" else functional.relu
        self.dropout = config.head_dropout
        self.labels = nn.Linear(config.model, config.labels)

    def forward(self, states: Float[Tensor, "batch query model"]) -> Float[Tensor, "batch label"]:
        """The logits of the labels."""
        pooled = self.activation(self.dense(states[:, 0]))
        return self.labels(drop(pooled, self.dropout, self.training))  # type: ignore[no-any-return]
