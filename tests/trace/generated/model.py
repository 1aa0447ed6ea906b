"""The model around generated attention: residual layers, and modules of torch's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.trace.generated.attention import DROPOUT, Attention
from tests.trace.generated.caches import Cache
from tests.trace.generated.entry import Entry, Sizes
from tests.trace.generated.masks import Mask
from tests.trace.generated.spec import Spec


class TorchAttention(nn.Module):
    """An attention layer that a module or a function of torch computes with its projections."""

    def __init__(self, spec: Spec, sizes: Sizes, _number: int) -> None:
        super().__init__()
        self._spec, self._heads = spec, sizes.heads
        model, bias = sizes.heads * sizes.width, spec.projection == "bias"
        share = DROPOUT if spec.mode == "train, dropout" else 0.0
        options: dict[str, Any] = {"dropout": share, "bias": bias, "batch_first": True}
        if spec.softmax == "nn.TransformerEncoderLayer":
            self.inner: nn.Module = nn.TransformerEncoderLayer(model, sizes.heads, 11, **options)
        else:
            self.inner = nn.MultiheadAttention(model, sizes.heads, **options)
        self.diary: list[Entry] | None = None
        with torch.no_grad():
            self.multi_head.in_proj_weight.mul_(9.0 if spec.scores == "large" else 2.0)

    @property
    def multi_head(self) -> nn.MultiheadAttention:
        """The module with the projections."""
        inner = getattr(self.inner, "self_attn", self.inner)
        assert isinstance(inner, nn.MultiheadAttention)
        return inner

    def forward(
        self, x: Tensor, source: Tensor | None, mask: Mask | None, _cache: Cache | None
    ) -> Tensor:
        other = x if source is None else source
        if self.diary is not None:
            self.diary.append(self._entry(x, other, mask))
        if self._spec.softmax == "nn.TransformerEncoderLayer":
            return self._encoder_layer(x, mask)
        if self._spec.softmax == "F.multi_head_attention_forward":
            return self._by_function(x, mask)
        weights = self._spec.softmax.endswith("weights")
        options = {"need_weights": weights, "average_attn_weights": self._spec.seed % 2 == 0}
        output, _ = self.inner(x, other, other, **options, **self._masks(mask, x.dtype))
        return output  # type: ignore[no-any-return]

    def _masks(self, mask: Mask | None, dtype: torch.dtype) -> dict[str, Any]:
        """The masks as torch's modules want them: True hides."""
        if mask is None:
            return {}
        if "padding" in mask.pattern and "causal" not in mask.pattern:
            return {"key_padding_mask": ~mask.keep[:, 0, 0]}
        given = mask.added(dtype) if mask.hidden_by == "−inf" else ~mask.keep
        if given.shape[0] > 1 or given.shape[1] > 1:
            given = given.expand(-1, self._heads, -1, -1)
            given = given.expand(mask.batch, -1, -1, -1).flatten(0, 1)
        else:
            given = given[0, 0]
        causal = mask.step == "is_causal"
        return {"attn_mask": given, **({"is_causal": True} if causal else {})}

    def _encoder_layer(self, x: Tensor, mask: Mask | None) -> Tensor:
        given = self._masks(mask, x.dtype)
        padding = given.get("key_padding_mask")
        return self.inner(  # type: ignore[no-any-return]
            x, given.get("attn_mask"), padding, is_causal=given.get("is_causal", False)
        )

    def _by_function(self, x: Tensor, mask: Mask | None) -> Tensor:
        inner = self.multi_head
        flat = x.transpose(0, 1)
        output, _ = functional.multi_head_attention_forward(
            flat, flat, flat, inner.embed_dim, self._heads, inner.in_proj_weight,
            inner.in_proj_bias, None, None, False, inner.dropout, inner.out_proj.weight,
            inner.out_proj.bias, training=self.training, need_weights=self._spec.seed % 3 == 0,
            **self._masks(mask, x.dtype),
        )  # fmt: skip
        return output.transpose(0, 1)

    def _entry(self, x: Tensor, other: Tensor, mask: Mask | None) -> Entry:
        """Queries, keys and values by torch's own projection, apart from the module's forward."""
        inner = self.multi_head
        weight, bias = inner.in_proj_weight.chunk(3), inner.in_proj_bias
        biases = [None, None, None] if bias is None else list(bias.chunk(3))
        parts = []
        for number, given in enumerate((x, other, other)):
            flat = functional.linear(given, weight[number], biases[number]).detach()
            parts.append(torch.unflatten(flat, -1, (self._heads, -1)).transpose(1, 2))
        return Entry(parts[0], parts[1], parts[2], parts[0].shape[-1] ** -0.5, mask)


class Model(nn.Module):
    """Layers with residual connections around them."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self._spec, sizes = spec, Sizes.of(spec)
        base = TorchAttention if spec.whole else Attention
        kind = type(spec.class_, (base,), {})
        self.layers = nn.ModuleList(
            kind(spec, sizes, number) for number in range(2 if spec.layers == "two" else 1)
        )
        self.start = nn.Parameter(torch.randn(1, sizes.queries, sizes.heads * sizes.width))

    @property
    def rounds(self) -> list[int]:
        """Which layer is called, one call after the other."""
        return [0, 0] if self._spec.layers == "one, twice" else list(range(len(self.layers)))

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        mask: Mask | None = None,
        caches: list[Cache] | None = None,
    ) -> Tensor:
        """States after every layer; latents begin with states of the model's own."""
        if self._spec.layout == "latents":
            x = self.start
        for turn, number in enumerate(self.rounds):
            layer = self.layers[number]
            call = layer.forward if self._spec.call == "forward" else layer
            x = x + call(x, source, mask, None if caches is None else caches[turn])
        return x

    def keep_diaries(self, keep: bool) -> None:
        """Begin or end taking down what the layers multiply."""
        for layer in self.layers:
            assert isinstance(layer, Attention | TorchAttention)
            layer.diary = [] if keep else None
