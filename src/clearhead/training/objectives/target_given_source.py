"""Predict the target of a source, token by token: translation and the like."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.data.batches.batch import Batch, PairBatch
from clearhead.training.objectives.objective import PredictedTokens


class TargetGivenSource(PredictedTokens):
    """−Σ log p(target token | the source, and the target before it)."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model: EncoderDecoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.decoder.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The decoder's states. Padding attends to its target; no token attends to padding."""
        assert isinstance(batch, PairBatch)
        places = torch.arange(batch.source.shape[1], device=batch.source.device)
        real = places < batch.source_counts[:, None]
        source, counts = self.model.encode(batch.source, real=real)
        return self.model.decoder(batch.ids, context=source, context_counts=counts)  # type: ignore[no-any-return]
