"""What the engine's compiled functions are told: sizes and addresses, in the order of memory.

Widths are padded to whole groups of 32 numbers, so that no kernel needs a special case for a
rest: padded weights are zero, and so is what they are multiplied with.
"""

from __future__ import annotations

import ctypes
from typing import Any

GROUP = 32  # numbers that share a scale, in weights and in what they are multiplied with
TILE = 16  # rows of a matrix that are computed together, one to a lane
TILE_BYTES = {4: 64 + GROUP * TILE // 2, 8: 32 + GROUP * TILE}  # of one group, scales included
KEYS = 32  # that lie together in the cache, column by column: a column is a line of memory
COLUMNS = 32  # of values that lie together
CHUNK = 128  # keys that are attended to at once; a row's bits must not depend on anything else
BLOCK = 64  # tokens of a prompt that go through the layers together
LINE = 64  # bytes of a line of the processor's cache, to which records are padded
UNIT_BYTES = 24_576  # of weights that a thread takes at once: long to stream, short to wait for
HEADS_AT_ONCE = 6  # of queries, or of keys and values, that a thread turns at once
SCORES_BYTES = 4 * 4 * CHUNK
RESULTS_BYTES = 2 * BLOCK * TILE * 4
HIDDEN_BYTES = BLOCK * GROUP * 4
# A thread's own memory: scores, results of tiles, hidden units, then one token's floats.
SCRATCH_BYTES = SCORES_BYTES + RESULTS_BYTES + HIDDEN_BYTES


def _wholes(*names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_int64) for name in names]


class Matrix(ctypes.Structure):
    """A quantised matrix: ``tiles`` of 16 rows, each of ``groups`` of 32 columns. Bias 0: none."""

    _fields_ = _wholes("weights", "tiles", "groups", "bits", "bias")


class Norm(ctypes.Structure):
    """Weight and bias of a normalisation; bias 0: none."""

    _fields_ = _wholes("weight", "bias")


class Attention(ctypes.Structure):
    """One attention: addresses of its norm, matrices and cache.

    ``rotary`` 0: positions are not turned. ``window`` 0: all keys are seen. ``cross``: keys and
    values are the source's.
    """

    _fields_ = _wholes(
        *("norm", "project", "output", "query_norm", "key_norm", "rotary", "window", "cross"),
        *("keys", "values"),
    )


class FeedForward(ctypes.Structure):
    """Addresses of the norm and the matrices; gate and up are one matrix, in turns."""

    _fields_ = _wholes("norm", "up", "down")


class Step(ctypes.Structure):
    """One call: tokens in, logits out. Most of it stays as it is between calls."""

    _fields_ = [
        *_wholes(
            # the model
            *("model", "model_width", "layers", "heads", "kv_heads", "key_dim", "key_width"),
            *("value_dim", "value_width", "hidden_width", "rotary_pairs", "activation", "gated"),
            *("rms", "post_norm", "cross"),
            *("attentions", "feed_forwards", "embedding", "positions", "embedding_norm"),
            *("final_norm", "head"),
            # the cache: bytes from row to row and from head to head
            *("key_row", "key_head", "value_row", "value_head"),
            *("source_key_row", "source_key_head", "source_value_row", "source_value_head"),
            # this call
            *("tokens", "ids", "rows", "places", "segments", "segment_starts"),
            *("wanted", "wanted_tokens", "source_lengths", "chunks", "logits", "logits_row"),
            # memory to work in
            *("states", "normed", "inputs", "input_bytes", "projected", "projected_width"),
            *("mixed", "hidden", "hidden_bytes", "partials", "private", "private_bytes"),
            "tickets",
        ),
        *((name, ctypes.c_float) for name in ("scale", "epsilon", "embedding_scale", "unused")),
    ]


class Pack(ctypes.Structure):
    """One matrix of float32 numbers to be packed; a thread that cannot sets its failure to 1."""

    _fields_ = _wholes("source", "target", "tiles", "groups", "bits", "scratch", "failures")
