"""The whole Transformer of Vaswani et al. 2017: an encoder, and a decoder that attends to it."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from clearhead.arguments import flag
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.models.heads import LanguageHead
from clearhead.models.inputs import check_cache, check_config, check_ids, check_source
from clearhead.models.padding import Padding
from clearhead.models.stack import Stack
from clearhead.tensors import token_flags


class EncoderDecoder(nn.Module):
    """An encoder for the source and a decoder with cross-attention to it.

    In cross-attention the queries come from the target, the keys and values from the source.

    Args:
        config: a description of kind "encoder-decoder" with head "language".

    Raises:
        ConfigError: the config is of another kind.

    >>> import torch
    >>> config = ModelConfig(
    ...     kind="encoder-decoder", vocab=97, context=64, model=24, layers=2, encoder_layers=1,
    ...     heads=3, feed_forward=48,
    ... )
    >>> source, target = torch.tensor([[5, 7, 11, 13]]), torch.tensor([[2, 3, 5]])
    >>> EncoderDecoder(config)(source, target).shape  # batch, query, vocab
    torch.Size([1, 3, 97])
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        check_config(config)
        if (
            config.kind != "encoder-decoder"
            or config.encoder_layers is None
            or config.head != "language"
        ):
            raise ConfigError(
                "EncoderDecoder wants a config of kind 'encoder-decoder' with head 'language'; got "
                f"{config.kind!r} with {config.head!r}."
            )
        self.config = config
        self.encoder = Stack(config, layers=config.encoder_layers, causal=False)
        self.decoder = Stack(config, layers=config.layers, causal=True, cross=True)
        if config.shared_embedding:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        self.head = LanguageHead(config)

    def forward(
        self,
        source: Int[Tensor, "batch key"],
        target: Int[Tensor, "batch query"],
        *,
        source_real: Bool[Tensor, "batch key"] | None = None,
        target_real: Bool[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch query vocab"]:
        """Compute the logits of the next token at each target position, as in training.

        Args:
            source: token ids of the source (batch, key).
            target: token ids of the target (batch, query).
            source_real: False for padding of the source; None without padding.
            target_real: False for padding of the target; None without padding.

        Returns:
            Logits (batch, query, vocab).

        Raises:
            InputError: ids or flags are of a wrong shape or type, or too long for the model.
        """
        weight = self.encoder.embedding.tokens.weight
        check_ids("source", source, weight)
        check_ids("target", target, weight)
        if len(source) != len(target):
            raise ShapeError(
                f"source and target must be of one batch; got {len(source)} sources and "
                f"{len(target)} targets."
            )
        for name, real, of in (
            ("source_real", source_real, source),
            ("target_real", target_real, target),
        ):
            if real is not None:
                token_flags(name, real, of)
        states, counts = self.encode(source, real=source_real)
        return self.decode(target, states, counts, real=target_real)

    def encode(
        self, source: Int[Tensor, "batch key"], *, real: Bool[Tensor, "batch key"] | None = None
    ) -> tuple[Float[Tensor, "batch longest model"], Int[Tensor, " batch"] | None]:
        """The source's states, packed in front, and how many of each row are real (None: all)."""
        check_ids("source", source, self.encoder.embedding.tokens.weight)
        padding = Padding.of(real, source)
        if padding is None:
            return self.encoder(source), None
        return self.encoder(padding.pack(source), counts=padding.counts), padding.counts

    def decode(
        self,
        target: Int[Tensor, "batch query"],
        source: Float[Tensor, "batch key model"] | None = None,
        source_counts: Int[Tensor, " batch"] | None = None,
        *,
        real: Bool[Tensor, "batch query"] | None = None,
        cache: ModelCache | None = None,
        last_only: bool = False,
    ) -> Float[Tensor, "batch query_or_1 vocab"]:
        """Logits after each target token; with a cache that knows the source it can be left out."""
        weight = self.encoder.embedding.tokens.weight
        check_ids("target", target, weight)
        last_only = flag("last_only", last_only)
        check_source(source, source_counts, target, model=self.config.model, dtype=weight.dtype)
        if cache is not None:
            check_cache(cache, self.config.layers, target, cross=True)
            source_counts = cache.source_counts if source is None else source_counts
            cache.source_counts = source_counts
        if source is None and (cache is None or not cache.cross_layers[0].length):
            raise InputError("decode needs the source's states, from encode; got none.")
        padding = Padding.of(real, target)
        counts = None if padding is None else padding.counts
        states = self.decoder(
            target if padding is None else padding.pack(target),
            counts=counts,
            cache=cache,
            context=source,
            context_counts=source_counts,
        )
        if last_only:
            states = states[:, -1:] if padding is None else padding.last(states)
        elif padding is not None:
            states = padding.unpack(states)
        return self.head(states, self.decoder.embedding.tokens.weight)  # type: ignore[no-any-return]

    def new_cache(self, capacity: int = 0) -> ModelCache:
        """An empty cache for one batch of sources."""
        return ModelCache.for_layers(self.config.layers, cross=True, capacity=capacity)
