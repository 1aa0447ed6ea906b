"""C structures that the compiled functions read: sizes and addresses. Constants of the layouts.

Widths are padded to whole groups of 32 numbers, so no kernel needs a special case for a
remainder: padded weights are zero, and so are the numbers that they are multiplied with.
"""

from __future__ import annotations

import ctypes
from typing import Any

GROUP = 32  # numbers that share a scale, in weights and in activations
TILE = 16  # rows of a matrix that are computed together, one in each lane
KEYS = 32  # in a block of the cache, column by column: a column is a cache line
COLUMNS = 32  # of values that are stored together
CHUNK = 128  # keys of a partial result; constant, since it determines the bits
BLOCK = 64  # tokens of a prompt that go through the layers in one step
LINE = 64  # bytes of a line of the processor's cache
UNIT_BYTES = 49_152  # of weights in a unit of work: long to stream, short to wait for
STREAK_BYTES = 300_000  # of two matrices that take turns in a unit: so long each is read on and on
HEADS_PER_UNIT = 6  # query or key/value heads that are rotated in one unit of work
SCORES_BYTES = 4 * 4 * CHUNK
TILE_RESULTS_BYTES = (BLOCK + 1) * TILE * 4  # no multiple of 4 kB, which would share cache lines
RESULTS_BYTES = 4 * TILE_RESULTS_BYTES  # two tiles of two matrices
HIDDEN_BYTES = BLOCK * GROUP * 4
# Each thread has its own memory: scores, results of tiles, hidden units, then one token's floats.
SCRATCH_BYTES = SCORES_BYTES + RESULTS_BYTES + HIDDEN_BYTES


def _integers(*names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_int64) for name in names]


class Matrix(ctypes.Structure):
    """A matrix: ``tiles`` of 16 rows, each of ``groups`` of 32 columns (see layouts.py).

    ``multiply`` is the address of its kind's product, ``unpack`` of what makes float32 of its
    ``unpack_count`` blocks of a row. Bias 0: none. ``next`` is a matrix whose rows follow those of
    this one, of another kind perhaps; 0: none. ``all_tiles`` counts its tiles too.
    """

    _fields_ = _integers(
        *("weights", "tiles", "groups", "tile_bytes", "multiply", "bias", "next", "all_tiles"),
        *("pieces", "block_bytes", "unpack", "unpack_count"),
    )


class Norm(ctypes.Structure):
    """Addresses of weight and bias of a normalisation; bias 0: none."""

    _fields_ = _integers("weight", "bias")


class Attention(ctypes.Structure):
    """One attention: addresses of its norm, matrices and cache.

    ``after_norm`` 0: what the layer adds is not normalised. ``rotary`` 0: no rotation. ``window``
    0: no sliding window. ``cross`` 1: cross-attention, keys and values are those of the source.
    The cache has room for ``room`` tokens of a row, in whole chunks; position p is stored at
    p modulo room, so a window's cache may be shorter than its text. Its rows and heads are so many
    bytes apart. ``seen`` is where queries and results go if somebody watches.
    """

    _fields_ = _integers(
        *(
            "norm",
            "after_norm",
            "project",
            "output",
            "query_norm",
            "key_norm",
            "rotary",
            "window",
            "cross",
        ),
        *("keys", "values", "room", "key_row", "key_head", "value_row", "value_head", "seen"),
    )


class FeedForward(ctypes.Structure):
    """Addresses of the norms and the matrices; gate 0: the hidden layer has none."""

    _fields_ = _integers("norm", "after_norm", "gate", "up", "down")


class Step(ctypes.Structure):
    """One call: tokens in, logits out. Most fields do not change between calls."""

    _fields_ = [
        *_integers(
            # the model
            *("model", "model_width", "layers", "heads", "kv_heads", "key_dim", "key_width"),
            *("value_dim", "value_width", "hidden_width", "rotary_pairs", "activation"),
            *("rms", "post_norm", "cross"),
            *("attentions", "feed_forwards", "embedding", "position_table", "embedding_norm"),
            *("final_norm", "head"),
            # what a watch keeps: bytes of a token (0: nobody watches), place of the first token
            *("seen_row", "seen_first"),
            # this call
            *("tokens", "ids", "rows", "positions", "segments", "segment_starts"),
            *("outputs", "output_tokens", "source_lengths", "chunks", "logits", "logits_row"),
            # workspace
            *("states", "normed", "inputs", "projected", "projected_width"),
            *(
                "mixed",
                "mixed_width",
                "hidden",
                "partials",
                "private",
                "private_bytes",
            ),
            "counters",
        ),
        *((name, ctypes.c_float) for name in ("scale", "epsilon", "embedding_scale", "softcap")),
    ]


class Pack(ctypes.Structure):
    """One float32 matrix to pack; a thread that cannot pack it sets its failure to 1."""

    _fields_ = _integers("source", "target", "tiles", "groups", "bits", "scratch", "failures")


class Interleave(ctypes.Structure):
    """Rows of blocks to put into tiles: row i is row ``order[i]`` of the source, −1 is zeros.

    ``scratch`` has room for 16 blocks of each thread if words are put together anew; 0 otherwise.
    """

    _fields_ = _integers(
        *("source", "row_bytes", "order", "target", "tiles", "blocks", "block_bytes", "pieces"),
        "scratch",
    )
