"""What a model is trained to do: to predict the next token, of a text or of a source's target."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.batch import Batch, PackedBatch, PairBatch
from clearhead.training.loss import cross_entropy
from clearhead.training.packed_states import packed_states


class Objective(nn.Module, ABC):
    """A batch in, the sum of its tokens' losses out.

    It is a module, so that what wraps modules (DDP, FSDP) sees the whole computation of a step.
    """

    model: Decoder | EncoderDecoder

    @abstractmethod
    def states(self, batch: Batch) -> Tensor:
        """What the head turns into logits."""

    @property
    @abstractmethod
    def embedding(self) -> Tensor:
        """The token embedding, which may serve as the head's matrix."""

    def forward(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """−Σ log p(target | what comes before it)."""
        return cross_entropy(
            self.model.head, self.embedding, self.states(batch), batch.targets, smoothing=smoothing
        )


class NextToken(Objective):
    """−Σ log p(token | the tokens of its document before it)."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model: Decoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.stack.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The decoder's states; documents of one row do not see each other."""
        assert isinstance(batch, PackedBatch)
        if batch.documents is None or batch.positions is None:
            return self.model.stack(batch.ids)  # type: ignore[no-any-return]
        return packed_states(self.model.stack, batch.ids, batch.documents, batch.positions)


class TargetGivenSource(Objective):
    """−Σ log p(target token | the source, and the target before it)."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model: EncoderDecoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.encoder.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The decoder's states. What follows a target's end sees it, but nobody sees that."""
        assert isinstance(batch, PairBatch)
        places = torch.arange(batch.source.shape[1], device=batch.source.device)
        real = places < batch.source_counts[:, None]
        source, counts = self.model.encode(batch.source, real=real)
        return self.model.decoder(batch.ids, context=source, context_counts=counts)  # type: ignore[no-any-return]


def objective_of(model: Decoder | EncoderDecoder) -> Objective:
    """The objective that fits a model's kind."""
    return NextToken(model) if isinstance(model, Decoder) else TargetGivenSource(model)
