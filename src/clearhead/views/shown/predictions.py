"""What a model says next, at one position or layer by layer, as something that shows itself."""

from __future__ import annotations

from clearhead.explain.lens import Lens
from clearhead.explain.pictures import Mark
from clearhead.explain.predictions import Prediction
from clearhead.explain.why.target import PredictedToken
from clearhead.views.shown.base import Shown


class ShownPrediction(Shown[Prediction]):
    """The next-token distribution behind one word."""

    @property
    def position(self) -> int:
        """The position of the word's last token."""
        return self.insight.position

    @property
    def mark(self) -> Mark:
        """The word."""
        return self.insight.mark

    @property
    def likeliest(self) -> tuple[PredictedToken, ...]:
        """The likeliest tokens, with logit, probability and rank."""
        return self.insight.likeliest

    @property
    def came(self) -> PredictedToken | None:
        """The token that really came; None behind the last."""
        return self.insight.came

    @property
    def surprise(self) -> float | None:
        """The surprise of the token that came, in bits."""
        return self.insight.surprise

    @property
    def rest(self) -> float:
        """The probability of all other tokens together."""
        return self.insight.rest


class ShownLens(Shown[Lens]):
    """The likeliest token after each layer, at each word."""

    @property
    def tokens(self) -> tuple[tuple[str, ...], ...]:
        """The likeliest token, by layer and word."""
        return self.insight.tokens

    @property
    def appears(self) -> tuple[int, ...]:
        """For each word the layer from which on the final answer is the likeliest."""
        return self.insight.appears

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The words."""
        return self.insight.marks
