"""Products of small matrices held in registers: the work of ``tiles.py``.

A tile has ``ROWS`` rows of ``LINE`` numbers, which are ``VECTORS`` vectors of 16. Its sums stay in
registers from the first term to the last; of the two factors, one comes as vectors, and single
numbers of the other are broadcast to all lanes::

    tile[r, :] = Σₙ left(r, n) · right[n, :]    r < ROWS

So a processor that can do one multiplication of vectors in a cycle is kept at it: 16 of them for
two loads of vectors and eight of numbers. ROWS and VECTORS follow its registers: with AVX-512 there
are 32, of a vector each; with AVX2 16, of half a vector (4 rows of one vector were slower there:
each key and value is then fetched once for 16 queries, not for 32).
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from clearhead.kernels.operations import (
    FLOAT,
    FLOATS,
    LANES,
    address,
    broadcast_to,
    floats,
    has_wide_registers,
    in_all_lanes,
    intrinsic_call,
    operation,
    pointer,
)

ROWS, VECTORS = (8, 2) if has_wide_registers() else (2, 2)
LINE = LANES * VECTORS
FLOAT_BYTES = 4
VECTOR_BYTES, LINE_BYTES = LANES * FLOAT_BYTES, LINE * FLOAT_BYTES
TERMS_AT_ONCE = 4
_WHOLE = ir.IntType(64)


def _whole(value: int) -> Any:
    return ir.Constant(_WHOLE, value)


def _vector_at(builder: Any, where: Any, number: int) -> Any:
    """The pointer to the n-th vector from an address."""
    return pointer(builder, builder.add(where, _whole(number * VECTOR_BYTES)), FLOATS)


def _multiply_add(builder: Any, left: Any, right: Any, added: Any) -> Any:
    return intrinsic_call(builder, "llvm.fma.v16f32", FLOATS, left, right, added)


def _sums(
    builder: Any, left: Any, row: Any, term: Any, terms: Any, right: Any, step: Any = None
) -> list[Any]:
    """Write the loops over the terms. Returns the tile's vectors, row by row.

    ``row`` and ``term`` are the steps in bytes from one left number to the next in either way,
    ``step`` from one line on the right to the next (one line, unless given).
    """
    step = _whole(LINE_BYTES) if step is None else step
    rows = [builder.mul(row, _whole(r)) for r in range(ROWS)]

    def add_terms(sums: list[Any], left: Any, right: Any, count: int) -> list[Any]:
        for _ in range(count):
            vectors = [
                builder.load(_vector_at(builder, right, v), align=FLOAT_BYTES)
                for v in range(VECTORS)
            ]
            for r in range(ROWS):
                place = pointer(builder, builder.add(left, rows[r]), FLOAT)
                one = broadcast_to(builder, builder.load(place, align=FLOAT_BYTES), FLOATS)
                for v, vector in enumerate(vectors):
                    index = r * VECTORS + v
                    sums[index] = _multiply_add(builder, one, vector, sums[index])
            left, right = builder.add(left, term), builder.add(right, step)
        return sums

    sums = [in_all_lanes(FLOATS, 0.0)] * (ROWS * VECTORS)
    rounds = builder.udiv(terms, _whole(TERMS_AT_ONCE))
    rest = builder.urem(terms, _whole(TERMS_AT_ONCE))
    for count, repeats in ((TERMS_AT_ONCE, rounds), (1, rest)):
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        state = []
        for value in (_whole(0), left, right, *sums):
            state.append(builder.phi(value.type))
            state[-1].add_incoming(value, before)
        done, left, right = state[:3]
        builder.cbranch(builder.icmp_unsigned("<", done, repeats), body, after)
        builder.position_at_end(body)
        following = [
            builder.add(done, _whole(1)),
            builder.add(left, builder.mul(term, _whole(count))),
            builder.add(right, builder.mul(step, _whole(count))),
            *add_terms(state[3:], left, right, count),
        ]
        for kept, value in zip(state, following, strict=True):
            kept.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        sums = state[3:]
    return sums


@operation(types.void, address, address, types.int64, types.int64, types.int64, address)
def put_tile(
    builder: Any, tile: Any, left: Any, row: Any, term: Any, terms: Any, right: Any
) -> None:
    """tile[r, :] = Σₙ left(r, n) · right[n, :]."""
    for number, vector in enumerate(_sums(builder, left, row, term, terms, right)):
        builder.store(vector, _vector_at(builder, tile, number), align=FLOAT_BYTES)


@operation(types.void, address, address, address, types.int64, types.int64, types.int64, address)
def add_tile(
    builder: Any, tile: Any, kept: Any, left: Any, row: Any, term: Any, terms: Any, right: Any
) -> None:
    """tile[r, :] = kept[:] · tile[r, :] + Σₙ left(r, n) · right[n, :]."""
    sums = _sums(builder, left, row, term, terms, right)
    shares = [builder.load(_vector_at(builder, kept, v), align=FLOAT_BYTES) for v in range(VECTORS)]
    for number, vector in enumerate(sums):
        place = _vector_at(builder, tile, number)
        earlier = builder.load(place, align=FLOAT_BYTES)
        joined = _multiply_add(builder, earlier, shares[number % VECTORS], vector)
        builder.store(joined, place, align=FLOAT_BYTES)


_PRODUCT = (address, types.int64, address, *[types.int64] * 3, address, types.int64)


@operation(types.void, *_PRODUCT)
def put_product(
    builder: Any, tile: Any, to: Any, left: Any, row: Any, term: Any, terms: Any, right: Any,
    step: Any,
) -> None:  # fmt: skip
    """tile[r, :] = Σₙ left(r, n) · right[n, :], rows ``to`` and lines ``step`` bytes apart."""
    for number, vector in enumerate(_sums(builder, left, row, term, terms, right, step)):
        builder.store(vector, _row_vector(builder, tile, to, number), align=FLOAT_BYTES)


@operation(types.void, *_PRODUCT)
def add_product(
    builder: Any, tile: Any, to: Any, left: Any, row: Any, term: Any, terms: Any, right: Any,
    step: Any,
) -> None:  # fmt: skip
    """tile[r, :] += Σₙ left(r, n) · right[n, :], rows ``to`` and lines ``step`` bytes apart."""
    for number, vector in enumerate(_sums(builder, left, row, term, terms, right, step)):
        place = _row_vector(builder, tile, to, number)
        joined = builder.fadd(builder.load(place, align=FLOAT_BYTES), vector)
        builder.store(joined, place, align=FLOAT_BYTES)


def _row_vector(builder: Any, tile: Any, to: Any, number: int) -> Any:
    """The pointer to the n-th vector of a tile whose rows are ``to`` bytes apart."""
    row = builder.add(tile, builder.mul(to, _whole(number // VECTORS)))
    return _vector_at(builder, row, number % VECTORS)


@operation(types.void, address, types.int64, address, types.int64, floats)
def put_transposed(
    builder: Any, to: Any, to_step: Any, source: Any, source_step: Any, factors: Any
) -> None:
    """to[c, r] = source[r, c] · factors[c] for 16 rows of 16 numbers; steps are bytes from a row
    to the next."""
    vectors = []
    for r in range(LANES):
        place = pointer(builder, builder.add(source, builder.mul(source_step, _whole(r))), FLOATS)
        vectors.append(builder.fmul(builder.load(place, align=FLOAT_BYTES), factors))
    half = LANES // 2
    while half:  # what lies half across the diagonal changes places, then within the quarters …
        for r in range(LANES):
            if not r & half:
                first, second = vectors[r], vectors[r + half]
                upper = [c if not c & half else LANES + c - half for c in range(LANES)]
                lower = [c + half if not c & half else LANES + c for c in range(LANES)]
                vectors[r], vectors[r + half] = (
                    builder.shuffle_vector(
                        first, second, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
                    )
                    for order in (upper, lower)
                )
        half //= 2
    for c, vector in enumerate(vectors):
        place = pointer(builder, builder.add(to, builder.mul(to_step, _whole(c))), FLOATS)
        builder.store(vector, place, align=FLOAT_BYTES)
