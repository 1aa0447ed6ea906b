"""How a generated model is called: its inputs, its steps, its modes and its transforms."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from tests.trace.generated.caches import Cache
from tests.trace.generated.entry import Entry, Sizes
from tests.trace.generated.masks import Mask, mask_of
from tests.trace.generated.model import Model
from tests.trace.generated.spec import Spec

STEPS = 3  # that follow a prompt
DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "bfloat16", "float16")}


class Case:
    """A generated model with inputs: the same at every run."""

    def __init__(self, spec: Spec) -> None:
        torch.manual_seed(spec.seed)
        self.spec, self.sizes = spec, Sizes.of(spec)
        dtype = DTYPES[spec.dtype]
        self.model = Model(spec).to(dtype).train(spec.mode != "eval")
        width = self.sizes.heads * self.sizes.width
        count = self.sizes.queries + (2 * STEPS if spec.cache != "none" else 0)
        self.x = torch.randn(self.sizes.batch, count, width).to(dtype)
        self.source = torch.randn(self.sizes.batch, self.sizes.keys, width).to(dtype)
        self.padding = (torch.arange(self.sizes.batch) * 2) % 5
        self.columns: list[Tensor] = []  # of each call of the model, by the last run

    def run(self) -> list[Tensor]:
        """Everything that the model computes, gradients too."""
        torch.manual_seed(self.spec.seed + 1)
        with ExitStack() as modes, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._enter(modes)
            if self.spec.transform != "none":
                return self._transformed()
            x = self.x.clone().requires_grad_(self.spec.gradient == "grad")
            outputs = self._steps(x)
            return [*outputs, *self._gradients(x, outputs)]

    def diaries(self) -> list[list[Entry]]:
        """What each layer multiplies, call after call, in a run without transforms."""
        self.model.keep_diaries(True)
        torch.manual_seed(self.spec.seed + 1)
        with ExitStack() as modes, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._enter(modes)
            self._steps(self.x.clone())
        kept = [layer.diary for layer in self.model.layers]
        self.model.keep_diaries(False)
        return kept  # type: ignore[return-value]

    def _enter(self, modes: ExitStack) -> None:
        gradient: dict[str, Any] = {
            "no_grad": torch.no_grad,
            "inference_mode": torch.inference_mode,
        }
        if self.spec.gradient in gradient:
            modes.enter_context(gradient[self.spec.gradient]())
        if self.spec.autocast:
            modes.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))

    def _steps(self, x: Tensor) -> list[Tensor]:
        self.columns = []
        if self.spec.cache == "none":
            mask = self._mask(self.sizes.queries, torch.arange(self.sizes.keys))
            self.columns.append(torch.arange(self.sizes.keys))
            return [self.model(x, self._source(), mask)]
        caches = [Cache(self.spec.cache) for _ in self.model.rounds]
        outputs, first = [], 0
        for count in [self.sizes.queries, *[1] * STEPS]:
            outputs.append(self._step(x, first, count, caches))
            first += count
        if self.spec.cache == "crop":
            for cache in caches:
                cache.crop(self.sizes.queries)
            other = x.flip(1)
            for step in range(2):
                outputs.append(self._step(other, self.sizes.queries + step, 1, caches))
        return outputs

    def _step(self, x: Tensor, first: int, count: int, caches: list[Cache]) -> Tensor:
        for cache in caches:
            cache.advance(count)
        columns = caches[0].visible_columns()
        self.columns.append(columns.clone())
        mask = self._mask(count, columns, first)
        output: Tensor = self.model(x[:, first : first + count], None, mask, caches)
        return output

    def _mask(self, queries: int, columns: Tensor, first: int = 0) -> Mask | None:
        sizes = self.sizes
        return mask_of(self.spec, sizes.batch, sizes.heads, queries, columns, self.padding, first)

    def _source(self) -> Tensor | None:
        return self.source if self.spec.kind == "cross" else None

    def _gradients(self, x: Tensor, outputs: list[Tensor]) -> list[Tensor]:
        if self.spec.gradient != "grad":
            return []
        wanted = [x, *self.model.parameters()]
        loss = torch.stack([output.double().square().mean() for output in outputs]).sum()
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
        return [part for part in found if part is not None]

    def _transformed(self) -> list[Tensor]:
        mask = self._mask(self.sizes.queries, torch.arange(self.sizes.keys))
        source = self._source()

        def states(x: Tensor) -> Tensor:
            output: Tensor = self.model(x, source, mask)
            return output

        def one(x: Tensor, other: Tensor) -> Tensor:
            given = other[None] if self.spec.kind == "cross" else None
            output: Tensor = self.model(x[None], given, mask)[0]
            return output

        if self.spec.transform == "vmap":
            return [torch.vmap(one, randomness="same")(self.x, self.source)]
        if self.spec.transform == "grad":
            return [torch.func.grad(lambda x: states(x).double().square().sum())(self.x)]
        return list(torch.func.jvp(states, (self.x,), (torch.ones_like(self.x),)))


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    """Bit for bit, NaN where NaN is."""
    return len(left) == len(right) and all(
        one.shape == other.shape
        and one.dtype == other.dtype
        and bool(((one == other) | (one.isnan() & other.isnan())).all())
        for one, other in zip(left, right, strict=True)
    )
