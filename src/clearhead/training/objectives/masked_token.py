"""Predict masked tokens from both sides (BERT: Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from torch import Tensor

from clearhead.models.encoder import Encoder
from clearhead.training.data.batches.batch import Batch
from clearhead.training.data.batches.masked import MaskedBatch
from clearhead.training.objectives.objective import PredictedTokens


class MaskedToken(PredictedTokens):
    """−Σ log p(token | its text, in which it and some others are masked)."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model: Encoder = model

    @property
    def embedding(self) -> Tensor:
        """The token embedding."""
        return self.model.stack.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        """The encoder's states; no token attends to padding."""
        assert isinstance(batch, MaskedBatch)
        return self.model.stack(batch.ids, counts=batch.counts)  # type: ignore[no-any-return]
