"""The interface of every training objective: a batch in, the sum of its losses out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from clearhead.models.build import Model
from clearhead.training.data.batches.batch import Batch
from clearhead.training.loss import TokenHead, cross_entropy


class Objective(nn.Module, ABC):
    """A batch in, the sum of the losses of its targets out.

    It is a module, so that DDP and FSDP, which wrap modules, see the whole computation of a step.
    """

    model: Model

    @abstractmethod
    def forward(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """The sum of the losses, in nats; ``smoothing`` is that of the labels."""


class PredictedTokens(Objective):
    """An objective whose targets are tokens."""

    @abstractmethod
    def states(self, batch: Batch) -> Tensor:
        """The hidden states that the output head turns into logits."""

    @property
    @abstractmethod
    def embedding(self) -> Tensor:
        """The token embedding, which may serve as the head's matrix."""

    def forward(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """−Σ log p(target | what the model sees)."""
        head = self.model.head
        assert isinstance(head, TokenHead)
        return cross_entropy(
            head, self.embedding, self.states(batch), batch.targets, smoothing=smoothing
        )
