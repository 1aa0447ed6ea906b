"""One attention layer of a spec, written as models write it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.trace.generated.caches import Cache
from tests.trace.generated.entry import Entry, Sizes, taken_down
from tests.trace.generated.layouts import Layout
from tests.trace.generated.masks import Mask, filled
from tests.trace.generated.projections import enlarge, rotated
from tests.trace.generated.softmaxes import before_mask, flexed, fused, softmax
from tests.trace.generated.spec import Spec

DROPOUT = 0.3
LAMBDA = 0.4  # of differential attention


class Attention(nn.Module):
    """One attention layer of the spec's kind."""

    def __init__(self, spec: Spec, sizes: Sizes, number: int) -> None:
        super().__init__()
        self._spec, self._sizes, self._number = spec, sizes, number
        heads = sizes.heads * (2 if spec.softmax == "differential" else 1)
        kv_heads = sizes.kv_heads * (2 if spec.softmax == "differential" else 1)
        model, bias = sizes.heads * sizes.width, spec.projection == "bias"
        self._parts = [
            heads * sizes.width,
            kv_heads * sizes.width,
            sizes.kv_heads * sizes.value_width,
        ]
        if spec.projection == "fused" and spec.kind == "self":
            self.qkv = nn.Linear(model, sum(self._parts), bias=bias)
        else:
            self.to_q = nn.Linear(model, self._parts[0], bias=bias)
            self.to_k = nn.Linear(model, self._parts[1], bias=bias)
            self.to_v = nn.Linear(model, self._parts[2], bias=bias)
        self.out = nn.Linear(sizes.heads * sizes.value_width, model, bias=bias)
        self.temperature = nn.Parameter(torch.rand(sizes.heads) + 0.5)
        self.talking = nn.Parameter(torch.randn(sizes.heads, sizes.heads))
        if spec.declares != "nothing":
            setattr(self, spec.declares, sizes.heads)
        if spec.layout == "one module per head":
            self.each = nn.ModuleList(Head(spec) for _ in range(sizes.heads))
        self.diary: list[Entry] | None = None
        self._softmaxes: list[Tensor] = []  # of a call, before they are combined
        self._by_math = False  # torch's fused attention takes its unfused path
        enlarge(self, 9.0 if spec.scores == "large" else 2.0)

    def forward(
        self, x: Tensor, source: Tensor | None, mask: Mask | None, cache: Cache | None
    ) -> Tensor:
        query, key, value = self.project(x, x if source is None else source)
        if cache is not None:
            key, value = cache.update(self._number, key, value)
        query, key, scale = self._scaled(query, key)
        layout = self._layout(key.shape[0])
        output, weights, written = self._attend(layout, query, key, value, scale, mask)
        if self.diary is not None:
            if self._by_math:  # torch multiplies these instead, and rounds them before
                query, key, scale = query * scale**0.5, key * scale**0.5, 1.0
            multiplied, softmaxes = (query, key, value, scale, mask), self._softmaxes
            self.diary.append(taken_down(*multiplied, output, weights, *softmaxes))
            self._softmaxes = []
        output = self._written_later(written, output)
        merged = output.transpose(1, 2).reshape(output.shape[0], output.shape[2], -1)
        return self.out(merged)  # type: ignore[no-any-return]

    def project(self, x: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values on canonical axes."""
        if hasattr(self, "qkv"):
            flat = self.qkv(x).split(self._parts, dim=-1)
        else:
            flat = (self.to_q(x), self.to_k(source), self.to_v(source))
        widths = (self._sizes.width, self._sizes.width, self._sizes.value_width)
        query, key, value = (
            part.unflatten(-1, (-1, width)).transpose(1, 2)
            for part, width in zip(flat, widths, strict=True)
        )
        if self._spec.projection == "rotary":
            query, key = rotated(query), rotated(key)
        if self._spec.projection == "qk-norm":
            query, key = (2 * functional.normalize(part, dim=-1) for part in (query, key))
        return query, key, value

    def _scaled(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, float]:
        """Queries and keys as they are multiplied, and what remains to be done to the scores."""
        scale = self._sizes.width**-0.5
        match self._spec.scale:
            case "query":
                return query * scale, key, 1.0
            case "key":
                return query, key * scale, 1.0
            case "both":
                return query * scale**0.5, key * scale**0.5, 1.0
        kernel = self._spec.fused or self._spec.softmax == "flex_attention"
        plain = self._spec.scale == "none" and not kernel
        return query, key, 1.0 if plain else scale

    def _layout(self, batch: int) -> Layout:
        sizes = self._sizes
        return Layout(self._spec.layout, self._spec.product, batch, sizes.heads, sizes.kv_heads)

    def _attend(
        self,
        layout: Layout,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        mask: Mask | None,
    ) -> tuple[Tensor, Tensor | None, tuple[Tensor, ...]]:
        """Output and, if they were computed, weights; and the tensors that were multiplied."""
        if self._spec.softmax == "flex_attention":
            return flexed(query, key, value, None if mask is None else mask.keep[0, 0]), None, ()
        if self._spec.layout == "one module per head":
            return self._each_head(query, key, value, scale, mask)
        if self._spec.softmax == "differential":
            return self._differential(layout, query, key, value, scale, mask)
        grouped = self._spec.fused and self._spec.seed % 2 == 0
        q, k, v = (
            layout.query(query),
            layout.key(key, grouped=grouped),
            layout.key(value, grouped=grouped),
        )
        if self._spec.fused:
            gqa = grouped and self._spec.layout == "grouped"
            out = self._fused(layout, q, k, v, scale, mask, gqa)
            return layout.canonical(out), None, (q, k)
        weights = self._weights(layout, q, k, scale, mask)
        out = layout.mixed(self._dropped(weights), v)
        return layout.canonical_output(out), layout.canonical(weights), (q, k)

    def _weights(
        self, layout: Layout, q: Tensor, k: Tensor, scale: float, mask: Mask | None
    ) -> Tensor:
        spec = self._spec
        scores = self._scaled_scores(layout, q, k, scale)
        if spec.softmax == "temperature":
            scores = scores * layout.spread(
                self.temperature[None, :, None, None], rows=q.shape[-2] // layout.heads
            )
        if spec.softmax == "talking before":
            scores = torch.einsum("bhqk,hg->bgqk", scores, self.talking)
        scores = before_mask(spec.softmax, scores)
        weights = softmax(spec.softmax, self._masked(layout, scores, mask))
        if spec.softmax in ("talking after", "differential") and self.diary is not None:
            self._softmaxes.append(weights)
        if spec.softmax == "talking after":
            weights = torch.einsum("bhqk,hg->bgqk", weights, self.talking)
        return weights

    def _scaled_scores(self, layout: Layout, q: Tensor, k: Tensor, scale: float) -> Tensor:
        if layout.product == "baddbmm":
            empty = q.new_zeros(q.shape[0], q.shape[1], k.shape[1])
            return torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=scale)
        scores = layout.scores(q, k)
        if scale == 1.0:
            return scores
        return scores / (1 / scale) if self._spec.scale == "scores /" else scores * scale

    def _masked(self, layout: Layout, scores: Tensor, mask: Mask | None) -> Tensor:
        if mask is None:
            return scores
        rows = mask.keep.shape[2]
        if mask.fills:
            keep = layout.spread(mask.keep, mask.axes, rows)
            return filled(scores, keep, mask.number(scores.dtype), mask.step)
        return scores + layout.spread(mask.added(scores.dtype), mask.axes, rows)

    def _fused(
        self,
        layout: Layout,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scale: float,
        mask: Mask | None,
        gqa: bool,
    ) -> Tensor:
        options: dict[str, Any] = {"dropout_p": self._share(), "enable_gqa": gqa}
        if self._spec.scale != "none":
            options["scale"] = scale
        if mask is not None and mask.step == "is_causal" and q.shape[-2] == k.shape[-2]:
            options["is_causal"] = True
        elif mask is not None and not bool(mask.keep.all() and mask.hidden_by != "−inf + ALiBi"):
            given = mask.keep if mask.hidden_by == "bool" else mask.added(q.dtype)
            options["attn_mask"] = layout.spread(given, mask.axes, mask.keep.shape[2])
        if self.diary is not None:
            self._by_math = torch._fused_sdp_choice(q, k, v, **options) == 0
        return fused(self._spec.softmax, q, k, v, **options)

    def _each_head(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Mask | None
    ) -> tuple[Tensor, Tensor | None, tuple[Tensor, ...]]:
        outputs, weights = [], []
        for number, head in enumerate(self.each):
            layout = Layout("one module per head", self._spec.product, key.shape[0], 1, 1, number)
            parts = (query[:, number], key[:, number], value[:, number])
            out, seen = head(self, layout, *parts, scale, mask)
            outputs.append(out)
            weights.append(seen)
        output = torch.stack(outputs, dim=1)
        return output, None if weights[0] is None else torch.stack(weights, dim=1), ()

    def _differential(
        self,
        layout: Layout,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        mask: Mask | None,
    ) -> tuple[Tensor, Tensor | None, tuple[Tensor, ...]]:
        (q1, q2), (k1, k2) = query.chunk(2, dim=1), key.chunk(2, dim=1)
        first = self._weights(layout, q1, k1, scale, mask)
        second = self._weights(layout, q2, k2, scale, mask)
        weights = first - LAMBDA * second
        return layout.mixed(self._dropped(weights), value), weights, ()

    def _written_later(self, written: tuple[Tensor, ...], output: Tensor) -> Tensor:
        """Memory that is used again once the attention is computed."""
        if self._spec.later == "query zeroed" and written:
            written[0].zero_()
        if self._spec.later == "key scaled" and written and self._spec.layout != "grouped 5-D":
            written[1].mul_(3.0)
        return output.mul_(0.5) if self._spec.later == "output scaled" else output

    def _share(self) -> float:
        return DROPOUT if self.training and self._spec.mode == "train, dropout" else 0.0

    def _dropped(self, weights: Tensor) -> Tensor:
        share = self._share()
        return functional.dropout(weights, share, self.training) if share else weights


class Head(nn.Module):
    """One head as a module of its own, as in teaching code."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self._spec = spec

    def forward(
        self,
        whole: Attention,
        layout: Layout,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        mask: Mask | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The output of this head and, if they were computed, its weights."""
        if self._spec.fused:
            return whole._fused(layout, query, key, value, scale, mask, False), None
        weights = whole._weights(layout, query, key, scale, mask)
        return layout.mixed(whole._dropped(weights), value), weights
