"""The decoder: every token attends to itself and earlier tokens; logits of the next token."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from clearhead.arguments import flag
from clearhead.errors import ConfigError
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.models.heads import LanguageHead
from clearhead.models.inputs import check_config, check_ids
from clearhead.models.padding import Padding
from clearhead.models.stack import Stack


class Decoder(nn.Module):
    """A decoder-only transformer (GPT, Llama): a causal stack and a language-model head.

    Args:
        config: a description of kind "decoder" with head "language".

    Raises:
        ConfigError: the config is of another kind.

    >>> import torch
    >>> config = ModelConfig(
    ...     kind="decoder", vocab=97, context=64, model=24, layers=2, heads=3, feed_forward=48
    ... )
    >>> Decoder(config)(torch.tensor([[5, 7, 11]])).shape  # batch, query, vocab
    torch.Size([1, 3, 97])
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        check_config(config)
        if config.kind != "decoder" or config.head != "language":
            raise ConfigError(
                "Decoder wants a config of kind 'decoder' with head 'language'; got "
                f"{config.kind!r} with {config.head!r}."
            )
        self.config = config
        self.stack = Stack(config, layers=config.layers, causal=True)
        self.head = LanguageHead(config)

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        *,
        real: Bool[Tensor, "batch query"] | None = None,
        cache: ModelCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch query_or_1 vocab"]:
        """Compute the logits of the next token at each position.

        Args:
            ids: token ids (batch, query).
            real: False for padding, on either side; None without padding.
            cache: from :meth:`new_cache`; the ids are those that follow what it holds.
            last_only: compute logits only for the last real token of each row.

        Returns:
            Logits (batch, query, vocab), or (batch, 1, vocab) with ``last_only``.

        Raises:
            InputError: ids or flags are of a wrong shape or type, or too long for the model.
        """
        check_ids("ids", ids, self.stack.embedding.tokens.weight)
        last_only = flag("last_only", last_only)
        padding = Padding.of(real, ids)
        counts = None if padding is None else padding.counts
        states = self.stack(
            ids if padding is None else padding.pack(ids), counts=counts, cache=cache
        )
        if last_only:
            states = states[:, -1:] if padding is None else padding.last(states)
        elif padding is not None:
            states = padding.unpack(states)
        return self.head(states, self.stack.embedding.tokens.weight)  # type: ignore[no-any-return]

    def new_cache(self, capacity: int = 0) -> ModelCache:
        """An empty cache, with memory for ``capacity`` tokens from the start."""
        return ModelCache.for_layers(self.config.layers, capacity=capacity)
