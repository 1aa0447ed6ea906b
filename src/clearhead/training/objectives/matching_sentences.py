"""Find the sentence that belongs to another one among all of a batch: sentence embeddings.

In-batch negatives (Henderson et al. 2017), the loss that most sentence encoders were trained with:

    loss = −Σ_i log( exp(s·cos(a_i, b_i)) / Σ_j exp(s·cos(a_i, b_j)) )

The second sentences of the other pairs are the wrong answers, unless they are the same text.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.models.encoder import Encoder
from clearhead.models.heads import EmbeddingHead
from clearhead.training.data.batches.batch import Batch
from clearhead.training.data.batches.sentences import SentenceBatch
from clearhead.training.objectives.objective import Objective

SCALE = 20.0  # of cosines, as in sentence-transformers: a softmax of numbers up to 1 is flat


class MatchingSentences(Objective):
    """−Σ log p(second sentence of a pair | the first, among all second ones of the batch)."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model: Encoder = model
        self.pooling = EmbeddingHead(unit=True)

    def forward(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """The sum over the pairs; ``smoothing`` is that of the labels."""
        assert isinstance(batch, SentenceBatch)
        first = self._embedded(batch.ids, batch.counts)
        second = self._embedded(batch.second, batch.second_counts)
        scores = SCALE * first.float() @ second.float().T
        same = (batch.second[:, None] == batch.second[None]).all(dim=-1)
        same.fill_diagonal_(False)
        chances = scores.masked_fill(same, -torch.inf).log_softmax(dim=-1)
        right = chances.diagonal()
        # The mean over all answers that are compared; -inf · 0 of the others would be no number.
        all_of_them = chances.masked_fill(same, 0.0).sum(dim=-1) / (~same).sum(dim=-1)
        return -((1 - smoothing) * right + smoothing * all_of_them).sum()

    def _embedded(
        self, ids: Int[Tensor, "row token"], counts: Int[Tensor, " row"]
    ) -> Float[Tensor, "row model"]:
        return self.pooling(self.model.stack(ids, counts=counts), counts)  # type: ignore[no-any-return]
