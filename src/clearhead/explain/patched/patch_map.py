"""The patch map: how much of another text's answer each patched word, layer and head brings.

    share = (target − target when patched) / (target − target of the donor)

0 is the answer of the text itself, 1 that of the donor. The target is logit(token) −
logit(instead). A share can be below 0 or above 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from clearhead.explain.pictures import Mark, shortened
from clearhead.explain.why.target import PredictedToken

WordPart: TypeAlias = Literal["state", "attention", "feed-forward"]
TOLERANCE = 1e-3  # of the share when everything is patched at once, which must be 1


@dataclass(frozen=True)
class PatchedHead:
    """One head, its output at every position taken from the donor."""

    name: str
    share: float


@dataclass(frozen=True, eq=False)
class PatchMap:
    """Two texts, and what each part of the second one's run does in the run of the first."""

    text: str
    donor: str
    model: str
    position: int
    mark: Mark  # the word behind which the prediction stands
    token: PredictedToken  # as the text predicts it
    instead: PredictedToken
    donor_token: PredictedToken  # the same tokens, as the donor predicts them
    donor_instead: PredictedToken
    target: float  # logit(token) − logit(instead), of the text
    donor_target: float
    columns: tuple[Mark, ...]
    others: tuple[str, ...]  # what the donor has in the place of each column
    changed: tuple[int, ...]  # columns that differ
    layers: tuple[str, ...]
    states: Float[np.ndarray, "layer column"]  # shares: the residual stream behind a layer
    attention: Float[np.ndarray, "layer column"]  # the output of all heads together
    feed_forward: Float[np.ndarray, "layer column"]
    heads: Float[np.ndarray, "layer head"]  # each head, at all positions
    whole: float  # the share when all words are patched behind the first layer: 1
    notes: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """True if patching every word behind the first layer gives the donor's answer."""
        return abs(self.whole - 1) <= TOLERANCE

    @property
    def strongest(self) -> tuple[PatchedHead, ...]:
        """All heads, the largest share first, by absolute value."""
        found = [
            PatchedHead(f"{name}H{head}", float(share))
            for name, row in zip(self.layers, self.heads, strict=True)
            for head, share in enumerate(row)
        ]
        return tuple(sorted(found, key=lambda one: -abs(one.share)))

    def of(self, part: WordPart) -> Float[np.ndarray, "layer column"]:
        """The map of one part, layers by words."""
        maps = {
            "state": self.states, "attention": self.attention, "feed-forward": self.feed_forward,
        }  # fmt: skip
        return maps[part]

    def label(self, column: int) -> str:
        """A word, and what stands in its place in the donor."""
        own, other = self.columns[column].text, self.others[column]
        return own if column not in self.changed else f"{own}/{other}"

    def carriers(self) -> Iterator[tuple[int, int, int]]:
        """The word whose state carries most of the answer: (column, first layer, last layer)."""
        best = self.states.argmax(axis=1).tolist()
        first = 0
        for layer in range(1, len(best) + 1):
            if layer == len(best) or best[layer] != best[first]:
                yield best[first], first, layer - 1
                first = layer

    def __repr__(self) -> str:
        texts = f"{shortened(self.text)!r} ← {shortened(self.donor)!r}"
        return f"PatchMap({texts}: {self.target:.3f} … {self.donor_target:.3f})"
