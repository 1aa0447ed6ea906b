"""The cost of a view before it is computed: bytes, and seconds estimated from a quick trial."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from clearhead.arguments import real_number, shown
from clearhead.errors import InputError
from clearhead.trace.workers import run_in_threads

View: TypeAlias = Literal["row", "column", "weights", "map", "entropy", "output", "words"]
VIEWS: tuple[View, ...] = ("row", "column", "weights", "map", "entropy", "output", "words")
MOST_BYTES = 2_000_000_000
MOST_SECONDS = 60.0
WORK_BYTES = 32_000_000  # the blocks that any view computes with
TRIALS = 5
SURELY_QUICK = 20_000_000_000  # multiplications that no machine needs a minute for


@dataclass(frozen=True)
class Cost:
    """Memory and time of a view. ``weights`` counts the numbers that are computed on the way."""

    bytes: int
    seconds: float
    weights: int

    def __str__(self) -> str:
        return f"{self.bytes / 1e6:,.0f} MB, about {self.seconds:.2g} s ({self.weights:,} weights)"


@dataclass(frozen=True)
class Limit:
    """The most that a view may take without being asked for explicitly."""

    bytes: int | float = MOST_BYTES
    seconds: int | float = MOST_SECONDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", real_number("bytes", self.bytes, least=0))
        object.__setattr__(self, "seconds", real_number("seconds", self.seconds, least=0))


LIMIT = Limit()


def cost_of(weights: int, key_dim: int, result_bytes: int, passes: int = 1) -> Cost:
    """``weights`` numbers of ``key_dim`` multiplications each, ``passes`` times over."""
    by_product, by_number = _speed()
    seconds = weights * (key_dim * by_product + passes * by_number)
    return Cost(result_bytes + WORK_BYTES, seconds, weights)


def check_limit(
    what: str, weights: int, key_dim: int, result_bytes: int, limit: Limit | None
) -> None:
    """Raise if a view would take more than the limit; ``None`` allows everything."""
    if limit is None:
        return
    if not isinstance(limit, Limit):
        raise InputError(f"limit must be a Limit, or None for no limit; got {shown(limit)}.")
    quick = weights * key_dim < SURELY_QUICK and limit.seconds >= MOST_SECONDS
    if quick and result_bytes + WORK_BYTES <= limit.bytes:
        return
    cost = cost_of(weights, key_dim, result_bytes)
    if cost.bytes > limit.bytes or cost.seconds > limit.seconds:
        raise InputError(
            f"{what} would take {cost}; the limit is {limit.bytes / 1e6:,.0f} MB and "
            f"{limit.seconds:g} s.",
            hint="choose fewer rows, columns or heads, a map(), or allow it with limit=None.",
        )


@functools.cache
def _speed() -> tuple[float, float]:
    """Seconds for one multiplication of a product, and for one number's exponential and pooling."""
    query, key = torch.randn(512, 64), torch.randn(1024, 64)
    scores = query @ key.T
    found: list[tuple[float, float]] = []

    def trial(_: int) -> None:
        product = _seconds(lambda: torch.mm(query, key.T, out=scores))
        rest = _seconds(lambda: (scores - 30).exp_().view(512, 32, 32).sum(2))
        found.append((product, rest))

    for number in range(TRIALS):
        run_in_threads(trial, [number], torch.device("cpu"))  # alone on one thread, as blocks are
    threads, numbers = torch.get_num_threads(), scores.numel()
    product, rest = (min(times) / threads for times in zip(*found, strict=True))
    return product / (numbers * 64), rest / numbers


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
