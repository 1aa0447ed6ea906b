"""The encoder: every token attends to every token."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from clearhead.errors import ConfigError
from clearhead.models.config import ModelConfig
from clearhead.models.heads import ClassificationHead, EmbeddingHead, MaskedHead
from clearhead.models.inputs import check_config, check_ids
from clearhead.models.padding import Padding
from clearhead.models.stack import Stack
from clearhead.tensors import token_numbers


class Encoder(nn.Module):
    """An encoder-only transformer (BERT): a stack without a causal mask, and one output head.

    The result depends on the config's head: ``none`` hidden states (batch, query, model);
    ``masked`` logits (batch, query, vocab); ``embedding`` (batch, model); ``classification``
    logits (batch, label).

    Args:
        config: a description of kind "encoder".

    Raises:
        ConfigError: the config is of another kind.

    >>> import torch
    >>> config = ModelConfig(
    ...     kind="encoder", head="embedding", vocab=97, context=64, model=24, layers=2, heads=3,
    ...     feed_forward=48,
    ... )
    >>> Encoder(config)(torch.tensor([[5, 7, 11]])).shape  # batch, model
    torch.Size([1, 24])
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        check_config(config)
        if config.kind != "encoder":
            raise ConfigError(f"Encoder wants a config of kind 'encoder'; got {config.kind!r}.")
        self.config = config
        self.stack = Stack(config, layers=config.layers, causal=False)
        self.head: MaskedHead | EmbeddingHead | ClassificationHead | None = None
        if config.head == "masked":
            self.head = MaskedHead(config)
        elif config.head == "embedding":
            self.head = EmbeddingHead(unit=config.embedding_unit)
        elif config.head == "classification":
            self.head = ClassificationHead(config)

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        *,
        real: Bool[Tensor, "batch query"] | None = None,
        segments: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch ..."]:
        """Compute the output of the head.

        Args:
            ids: token ids (batch, query).
            real: False for padding, on either side; None without padding.
            segments: the segment of each token (BERT's token types); 0 without it.

        Returns:
            What the class describes for the config's head.

        Raises:
            InputError: ids or flags are of a wrong shape or type, or too long for the model.
        """
        check_ids("ids", ids, self.stack.embedding.tokens.weight)
        if segments is not None and self.config.segments:
            segments = token_numbers("segments", segments, ids, count=self.config.segments)
        padding = Padding.of(real, ids)
        counts = None if padding is None else padding.counts
        if padding is not None:
            ids = padding.pack(ids)
            segments = None if segments is None else padding.pack(segments)
        states = self.stack(ids, counts=counts, segments=segments)
        if isinstance(self.head, EmbeddingHead):
            return self.head(states, counts)  # type: ignore[no-any-return]
        if isinstance(self.head, ClassificationHead):
            return self.head(states)  # type: ignore[no-any-return]
        if isinstance(self.head, MaskedHead):
            states = self.head(states, self.stack.embedding.tokens.weight)
        return states if padding is None else padding.unpack(states)
