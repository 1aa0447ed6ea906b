"""What happened, counted by the kernels: a product, a softmax and a product are attention.

This door keeps nothing. It tells the watchers that attention ran, wherever in the model and under
whatever name, so that what no other door kept can be named. A softmax whose result, or something
of its size, goes into a product counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from torch import Tensor

from clearhead.trace.watching.watchers import collected, happened, mark_place


class _Sizes:
    """How many numbers the products and softmaxes of the running forward had."""

    def __init__(self) -> None:
        self.products: set[int] = set()
        self.softmaxes: dict[int, list[dict[int, Any]]] = {}  # by size: where each of them ran
        self.in_place: dict[int, bool] = {}  # sizes of exponentials that were written in place
        self.began = PRODUCTS.counted  # its products were counted from the first on
        self.opened = PRODUCTS.opened


class Products:
    """Whether products are counted at all: that costs more than all the rest of watching a step.

    A softmax inside of a door's own function is attention at once. As long as there are no others,
    nobody asks what products ran. The first softmax elsewhere switches their counting on again, in
    time for the product that follows it, until the last watch ends.
    """

    def __init__(self) -> None:
        self.counted = False
        self.opened = 0  # how many times a first watch began
        self.wanted = False  # some softmax ran outside of doors
        self.switch: Callable[[bool], None] = lambda _: None

    def begin(self, switch: Callable[[bool], None]) -> None:
        """The first watch began: count until a forward shows that nobody asks."""
        self.switch, self.wanted = switch, False
        self.opened += 1
        self.count(True)

    def count(self, on: bool) -> None:
        """Count products from now on, or no longer."""
        if self.counted != on:
            self.switch(on)
            self.counted = on

    def want(self) -> None:
        """Somebody asks."""
        self.wanted = True
        self.count(True)


PRODUCTS = Products()


_SIZES: ContextVar[_Sizes | None] = ContextVar("sizes", default=None)


def forget_sizes() -> list[dict[int, Any]]:
    """Another forward begins, or the watch ends. Returns where softmaxes ran whose results went
    into no product of their size: they were split, or used in another way."""
    sizes = _SIZES.get()
    if sizes is not None and sizes.opened == PRODUCTS.opened and not PRODUCTS.wanted:
        PRODUCTS.count(False)
    _SIZES.set(_Sizes())
    return [] if sizes is None else [place for open_ in sizes.softmaxes.values() for place in open_]


def product_ran(args: tuple[Any, ...], result: Tensor) -> None:
    """A batched product: the first of an attention, or its last."""
    sizes = _SIZES.get()
    if sizes is None:
        return
    sizes.products.add(result.numel())
    if not sizes.softmaxes and not sizes.in_place:
        return
    for part in args[:2]:
        opened = len(sizes.softmaxes.pop(part.numel(), ()))
        by_hand = sizes.in_place.pop(part.numel(), False)
        for _ in range(opened or by_hand):
            happened()


def sum_and_product_ran(args: tuple[Any, ...], result: Tensor) -> None:
    """baddbmm: the product is of its second and third argument."""
    product_ran(args[1:], result)


def softmax_ran(_args: tuple[Any, ...], result: Tensor) -> None:
    """A softmax with three axes or more may have come from any product; with two it is more often
    a router's or a classifier's, and counts only if a batched product had its size."""
    calls = collected()
    if calls is not None and result.ndim > 2:
        calls.softmaxes += 1  # the door says so
        return
    sizes = _SIZES.get()
    if sizes is None:
        return
    if result.ndim > 2 or _came_from_product(sizes, result):
        PRODUCTS.want()
        sizes.softmaxes.setdefault(result.numel(), []).append(mark_place())


def exponential_ran(_args: tuple[Any, ...], result: Tensor) -> None:
    """An exponential: of scores, if a product of this size ran before."""
    sizes = _SIZES.get()
    if sizes is not None and result.ndim > 1 and _came_from_product(sizes, result):
        sizes.softmaxes[result.numel()] = [mark_place()]


def exponential_in_place_ran(_args: tuple[Any, ...], result: Tensor) -> None:
    """Likewise; torch's own logsumexp does that, too, beside a softmax of the same scores."""
    sizes = _SIZES.get()
    if sizes is not None and result.ndim > 1 and _came_from_product(sizes, result):
        sizes.in_place[result.numel()] = True


def _came_from_product(sizes: _Sizes, result: Tensor) -> bool:
    """True if a product of this size ran before, or if nobody knows."""
    known = sizes.began and PRODUCTS.counted
    PRODUCTS.want()
    return result.numel() in sizes.products if known else True
