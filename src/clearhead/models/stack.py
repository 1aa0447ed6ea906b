"""The one configurable stack of all models: embedding, blocks, final normalisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.attention import masks
from clearhead.attention.alibi import alibi_bias, alibi_slopes
from clearhead.attention.rotary import Rotary, Rotation
from clearhead.kernels.freed_memory import keep_freed_memory
from clearhead.layers.block import Block
from clearhead.layers.embedding import Embedding, SinusoidalPositions
from clearhead.layers.feed_forward import FeedForward
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.layers.normalisation import RMSNorm
from clearhead.layers.positions import LearnedPositions, RelativeBias
from clearhead.layers.ragged import Ragged
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.models.inputs import check_cache, check_length
from clearhead.tensors import token_ids


@dataclass(eq=False)
class Shared:
    """What all blocks of one forward share: positions, masks, caches, rotations."""

    positions: Int[Tensor, "#batch query"]
    mask: masks.Mask | None
    bias: Tensor | None
    cache: ModelCache | None
    counts: Int[Tensor, " batch"] | None
    ragged: Ragged | None
    context: Float[Tensor, "batch key model"] | None
    cross_mask: masks.Mask | None
    rotations: dict[Rotary, Rotation] = field(default_factory=dict)

    def rotation(self, rotary: Rotary | None, dtype: torch.dtype) -> Rotation | None:
        """The rotation of a layer, computed once for all layers that rotate alike."""
        if rotary is not None and rotary not in self.rotations:
            self.rotations[rotary] = rotary.at(self.positions, dtype)
        return None if rotary is None else self.rotations[rotary]


class Stack(nn.Module):
    """Ids in, hidden states out; ``causal`` makes it a decoder, ``cross`` adds cross-attention."""

    def __init__(
        self, config: ModelConfig, *, layers: int, causal: bool, cross: bool = False
    ) -> None:
        super().__init__()
        keep_freed_memory()
        self.config, self.causal = config, causal
        norm = partial(_norm, config, config.model)
        self.embedding = Embedding(
            config.vocab,
            config.model,
            positions=_positions(config),
            segments=config.segments,
            scale=config.embedding_scale,
            norm=norm if config.embedding_norm else None,
            dropout=config.dropout_of("embedding"),
        )
        self.blocks = nn.ModuleList(
            Block(
                _attention(config, causal=causal, layer=layer),
                _feed_forward(config),
                norm,
                config.norm_place,
                cross_attention=_attention(config, cross=True) if cross else None,
                dropout=config.dropout,
            )
            for layer in range(layers)
        )
        self.norm = norm() if config.norm_place != "after" else None
        self.relative = None
        if config.positions == "relative":
            self.relative = RelativeBias(
                config.heads,
                buckets=config.relative_buckets,
                max_distance=config.relative_distance,
                causal=causal,
            )

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        *,
        counts: Int[Tensor, " batch"] | None = None,
        segments: Int[Tensor, "batch query"] | None = None,
        cache: ModelCache | None = None,
        context: Float[Tensor, "batch key model"] | None = None,
        context_counts: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch query model"]:
        """States of packed rows; ``counts`` says how many tokens of each are real."""
        states, shared = self.begin(
            ids,
            counts=counts,
            segments=segments,
            cache=cache,
            context=context,
            context_counts=context_counts,
        )
        for number in range(len(self.blocks)):
            states = self.run_block(number, states, shared)
        return self.end(states, shared)

    def begin(
        self,
        ids: Int[Tensor, "batch query"],
        *,
        counts: Int[Tensor, " batch"] | None = None,
        segments: Int[Tensor, "batch query"] | None = None,
        cache: ModelCache | None = None,
        context: Float[Tensor, "batch key model"] | None = None,
        context_counts: Int[Tensor, " batch"] | None = None,
    ) -> tuple[Tensor, Shared]:
        """The states that enter the first block, and what all blocks share."""
        self._check(ids, cache)
        positions = _positions_of(ids, cache)
        states = self.embedding(ids, positions + self.config.position_offset, segments)
        shared = Shared(
            positions,
            mask=None if self.causal or counts is None else masks.lengths(counts),
            bias=self._bias(positions, counts, cache, states),
            cache=cache,
            counts=None if cache is None else counts,
            ragged=Ragged.of(counts, ids.shape[1]) if cache is None else None,
            context=context,
            cross_mask=None if context_counts is None else masks.lengths(context_counts),
        )
        return states if shared.ragged is None else shared.ragged.unpad(states), shared

    def run_block(self, number: int, states: Tensor, shared: Shared) -> Tensor:
        """The states behind one block."""
        block, cache = self.blocks[number], shared.cache
        assert isinstance(block, Block)
        self_options = {
            "mask": shared.mask,
            "bias": shared.bias,
            "cache": None if cache is None else cache.layers[number],
            "counts": shared.counts,
            "rotation": shared.rotation(block.attention.rotary, states.dtype),
            "ragged": shared.ragged,
        }
        cross_cache = (
            None if cache is None or not cache.cross_layers else cache.cross_layers[number]
        )
        cross_options = {"mask": shared.cross_mask, "cache": cross_cache, "ragged": shared.ragged}
        return block(states, self_options, shared.context, cross_options)  # type: ignore[no-any-return]

    def end(self, states: Tensor, shared: Shared) -> Float[Tensor, "batch query model"]:
        """The final states of all rows, from those behind the last block."""
        states = states if self.norm is None else self.norm(states)
        return states if shared.ragged is None else shared.ragged.pad(states)

    def _bias(
        self, positions: Tensor, counts: Tensor | None, cache: ModelCache | None, states: Tensor
    ) -> Tensor | None:
        """Position bias that is added to the scores of every layer; None without one."""
        queries = positions.shape[1]
        keys = queries if cache is None else cache.layers[0].held + queries
        uneven = cache is not None and (counts is not None or cache.layers[0].ragged)
        if uneven:  # the cache keeps real tokens only, and grows to the longest row
            keys = int((positions[:, 0] + (queries if counts is None else counts)).max())
        if self.config.positions == "alibi":
            slopes = alibi_slopes(self.config.heads).to(states)
            return alibi_bias(slopes, 1 if self.causal else queries, keys)
        if self.relative is not None:
            return self.relative(queries, keys, positions if uneven else None)  # type: ignore[no-any-return]
        return None

    def _check(self, ids: Tensor, cache: ModelCache | None) -> None:
        token_ids("ids", ids)
        if cache is not None:
            cross = self.blocks[0].cross_attention is not None
            check_cache(cache, len(self.blocks), ids, cross=cross)
        check_length(self.config, ids.shape[1], 0 if cache is None else cache.length)


def _positions_of(ids: Tensor, cache: ModelCache | None) -> Tensor:
    if cache is not None:
        return cache.positions(ids.shape[1]).to(ids.device)
    return torch.arange(ids.shape[1], device=ids.device)[None]


def _norm(config: ModelConfig, width: int) -> nn.Module:
    if config.norm == "layer":
        return nn.LayerNorm(width, eps=config.norm_epsilon)
    return RMSNorm(width, config.norm_epsilon, offset=config.norm_offset)


def _positions(config: ModelConfig) -> LearnedPositions | SinusoidalPositions | None:
    if config.positions == "learned":
        return LearnedPositions(config.context + config.position_offset, config.model)
    if config.positions in ("sinusoidal", "sinusoidal-halves"):
        return SinusoidalPositions(config.model, halves=config.positions == "sinusoidal-halves")
    return None


def _attention(
    config: ModelConfig, *, causal: bool = False, cross: bool = False, layer: int = 0
) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.model,
        config.heads,
        kv_heads=config.kv_heads,
        key_dim=config.key_dim,
        value_dim=config.value_dim,
        context=config.model if cross else None,
        bias=config.attention_bias,
        output_bias=config.attention_output_bias,
        norm=partial(_norm, config) if config.attention_norm else None,
        rotary=None if cross else config.rotary_of(layer),
        dropout=config.dropout_of("attention"),
        causal=causal,
        window=config.window if not cross and config.windowed(layer) else None,
        scale=config.attention_scale,
        softcap=config.attention_softcap,
        sinks=config.sinks,
    )


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(
        config.model,
        config.feed_forward,
        config.activation,
        gated=config.gated,
        bias=config.feed_forward_bias,
        dropout=config.activation_dropout,
    )
