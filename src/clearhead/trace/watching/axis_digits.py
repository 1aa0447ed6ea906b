"""Where the axes of a product go when a tensor is reshaped and permuted.

The result of a batched product has three axes: z (whatever was batched), n (rows) and m (columns).
A model splits, permutes and merges them: (batch·head) becomes batch and head, head joins the width.
An axis is written as *digits*, as a number is: an axis of size 12 split into 3 × 4 is a digit of
size 3 that counts in fours and a digit of size 4 that counts in ones. So wherever a part of an axis
goes, it is known what it was, and nobody has to guess which part is the head.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from torch import Tensor


class Digit(NamedTuple):
    """A part of an axis: ``size`` steps of ``step``."""

    axis: str
    size: int
    step: int


Dim: TypeAlias = tuple[Digit, ...]
Label: TypeAlias = tuple[Dim, ...]


def label_of(axes: str, sizes: tuple[int, ...]) -> Label:
    """Every dimension is an axis of its own."""
    return tuple(
        (Digit(axis, size, 1),) if size > 1 else () for axis, size in zip(axes, sizes, strict=True)
    )


def viewed(label: Label, shape: tuple[int, ...]) -> Label | None:
    """The label after a view; None if a dimension takes what does not divide."""
    queue = [digit for dim in label for digit in dim][::-1]
    dims: list[Dim] = []
    for size in shape:
        dim: list[Digit] = []
        left = size
        while left > 1:
            if not queue:
                return None
            axis, count, step = queue.pop()
            if left % count == 0:
                dim.append(Digit(axis, count, step))
                left //= count
            elif count % left == 0:
                inner = count // left
                dim.append(Digit(axis, left, step * inner))
                queue.append(Digit(axis, inner, step))
                left = 1
            else:
                return None
        dims.append(tuple(dim))
    return tuple(dims) if not queue else None


def permuted(label: Label, order: tuple[int, ...]) -> Label:
    """The label after a permutation."""
    return tuple(label[place] for place in order)


def sizes_of(label: Label) -> tuple[int, ...]:
    """The shape that a label stands for."""
    return tuple(math.prod(digit.size for digit in dim) for dim in label)


def is_whole(dim: Dim, axis: str, size: int) -> bool:
    """True if a dimension is all of an axis, in order."""
    return size == 1 or _merged(dim) == (Digit(axis, size, 1),)


def heads_joined(label: Label) -> bool:
    """True if a part of z or n stands in one dimension with the width, before it.

    A tensor that is flattened as a whole, or whose rows are, joins nothing; unless an axis of size
    1 is left over, which is then the row of a single query.
    """
    rows_elsewhere = any(
        digit.axis == "n" for dim in label if dim and dim[-1].axis != "d" for digit in dim
    )
    for dim in label:
        if len(dim) > 1 and dim[-1].axis == "d" and len(label) > 1:
            no_rows = all(digit.axis != "n" for digit in dim)
            return rows_elsewhere or no_rows or (len(label) > 2 and () in label)
    return False


def stacked(label: Label, place: int, count: int) -> Label:
    """The label after a stack of ``count`` such tensors on a new axis, s."""
    return (*label[:place], (Digit("s", count, 1),), *label[place:])


def stack_joined(label: Label) -> bool:
    """True if what was stacked stands right before the width, in one dimension with it."""
    return any(len(dim) > 1 and [d.axis for d in dim[-2:]] == ["s", "d"] for dim in label)


def _merged(dim: Dim) -> Dim:
    """Neighbouring digits of an axis as one."""
    kept: list[Digit] = []
    for digit in dim:
        if kept and kept[-1].axis == digit.axis and kept[-1].step == digit.size * digit.step:
            kept[-1] = Digit(digit.axis, kept[-1].size * digit.size, digit.step)
        else:
            kept.append(digit)
    return tuple(kept)


def split_by(label: Label, cuts: Label) -> Label | None:
    """The same label with every digit as fine as in ``cuts``."""
    edges: dict[str, set[int]] = {}
    for dim in cuts:
        for digit in dim:
            edges.setdefault(digit.axis, set()).update((digit.step, digit.step * digit.size))
    fine: list[Dim] = []
    for dim in label:
        parts: list[Digit] = []
        for digit in dim:
            inside = sorted(
                edge
                for edge in edges.get(digit.axis, ())
                if digit.step < edge < digit.step * digit.size
            )
            bounds = [digit.step, *inside, digit.step * digit.size]
            if any(high % low for low, high in pairwise(bounds)):
                return None
            pairs = list(pairwise(bounds))[::-1]
            parts += [Digit(digit.axis, high // low, low) for low, high in pairs]
        fine.append(tuple(parts))
    return tuple(fine)


def arranged(tensor: Tensor, label: Label, wanted: tuple[Dim, ...]) -> Tensor | None:
    """A tensor of this (fine) label with its digits gathered into the wanted dimensions.

    A dimension of size 1 stands for a repeated one: its digits become 1. Digits that the tensor
    does not have become 1 as well. Dimensions that end up repeated stay so, without a copy.
    """
    sizes: list[int] = []
    places: dict[Digit, int] = {}
    for dim, size in zip(label, tensor.shape, strict=True):
        repeated = size == 1 and dim != ()
        for digit in dim:
            places[digit] = len(sizes)
            sizes.append(1 if repeated else digit.size)
        if not dim and size != 1:
            return None
    used = [digit for dim in wanted for digit in dim if digit in places]
    if len(used) != len(places):
        return None
    whole = tensor.reshape(sizes).permute([places[digit] for digit in used])
    shape, place = [], 0
    for dim in wanted:
        mine = [digit for digit in dim if digit in places]
        have = [whole.shape[place + offset] for offset in range(len(mine))]
        repeated = any(s == 1 and digit.size > 1 for s, digit in zip(have, mine, strict=True))
        if repeated and any(size > 1 for size in have):  # a part of it is not: repeat it all
            grown = list(whole.shape)
            grown[place : place + len(mine)] = [digit.size for digit in mine]
            whole = whole.expand(grown)
            have = [digit.size for digit in mine]
        if len(mine) != len(dim) and mine:
            return None
        shape.append(math.prod(have))
        place += len(mine)
    return whole.reshape(shape)
