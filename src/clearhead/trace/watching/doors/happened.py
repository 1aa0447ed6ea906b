"""What happened, counted by the kernels: a product, a softmax and a product are attention.

This door keeps nothing. It tells the watchers that attention ran, wherever in the model and under
whatever name, so that what no other door kept can be named. A softmax whose result, or something
of its size, goes into a product counts.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from torch import Tensor

from clearhead.trace.watching.watchers import mark_place, watchers


class _Sizes:
    """How many numbers the products and softmaxes of the running forward had."""

    def __init__(self) -> None:
        self.products: set[int] = set()
        self.softmaxes: dict[int, list[dict[int, Any]]] = {}  # by size: where each of them ran


_SIZES: ContextVar[_Sizes | None] = ContextVar("sizes", default=None)


def forget_sizes() -> list[dict[int, Any]]:
    """Another forward begins, or the watch ends. Returns where softmaxes ran whose results went
    into no product of their size: they were split, or used in another way."""
    sizes = _SIZES.get()
    _SIZES.set(_Sizes())
    return [] if sizes is None else [place for open_ in sizes.softmaxes.values() for place in open_]


def product_ran(args: tuple[Any, ...], result: Tensor) -> None:
    """A batched product: the first of an attention, or its last."""
    sizes = _SIZES.get()
    if sizes is None:
        return
    sizes.products.add(result.numel())
    if not sizes.softmaxes:
        return
    opened = sum(len(sizes.softmaxes.pop(part.numel(), ())) for part in args[:2])
    for _ in range(opened):
        for watcher in watchers():
            watcher.happened()


def sum_and_product_ran(args: tuple[Any, ...], result: Tensor) -> None:
    """baddbmm: the product is of its second and third argument."""
    product_ran(args[1:], result)


def softmax_ran(_args: tuple[Any, ...], result: Tensor) -> None:
    """A softmax with three axes or more may have come from any product; with two it is more often
    a router's or a classifier's, and counts only if a batched product had its size."""
    sizes = _SIZES.get()
    count = result.numel()
    if sizes is not None and (result.ndim > 2 or count in sizes.products):
        sizes.softmaxes.setdefault(count, []).append(mark_place())


def exponential_ran(_args: tuple[Any, ...], result: Tensor) -> None:
    """An exponential: of scores, if a product of this size ran before."""
    sizes = _SIZES.get()
    count = result.numel()
    if sizes is not None and count in sizes.products and result.ndim > 1:
        sizes.softmaxes[count] = [mark_place()]
