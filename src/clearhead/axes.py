"""THE glossary of axes. The same words name them in every type, error, doc page and picture.

========== =============================================================================
batch      independent sequences computed side by side
query      positions that look (rows of an attention map)
key        positions that are looked at (columns); values share this axis
head       query heads, T in the textbook, 8 in the paper
kv_head    key/value heads; fewer than ``head`` when heads are grouped
key_dim    width of one head's query and key, m in the textbook, d_k in the paper
value_dim  width of one head's value, l in the textbook, d_v in the paper
model      width of the states between layers, d in the textbook, d_model in the paper
vocab      entries of the vocabulary
========== =============================================================================

Shapes are written in these words with jaxtyping, ``Float[Tensor, "batch head query key_dim"]``.
The tests check them at every call; in production they cost nothing.
"""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "batch": "independent sequences computed side by side",
    "query": "positions that look (rows of an attention map)",
    "key": "positions that are looked at (columns of an attention map)",
    "head": "query heads",
    "kv_head": "key/value heads; fewer than head when heads are grouped",
    "key_dim": "width of one head's query and key",
    "value_dim": "width of one head's value",
    "model": "width of the states between layers",
    "vocab": "entries of the vocabulary",
}
