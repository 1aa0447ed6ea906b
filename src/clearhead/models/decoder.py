"""The decoder: every token sees itself and what came before; on top, the next token."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from clearhead.errors import ConfigError
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.models.heads import LanguageHead
from clearhead.models.padding import Padding
from clearhead.models.stack import Stack


class Decoder(nn.Module):
    """GPT, Llama and their kin: a causal stack and a language-model head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
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
        """Logits of the token after each token, or only after the last real one of each row.

        ``real`` says which tokens are not padding, on either side. With a cache, the ids are those
        that follow what it holds.
        """
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
        """An empty cache, with room for ``capacity`` tokens from the start."""
        return ModelCache.for_layers(self.config.layers, capacity=capacity)
