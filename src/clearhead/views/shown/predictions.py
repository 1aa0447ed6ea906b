"""What a model says next, at one position or layer by layer, as something that shows itself."""

from __future__ import annotations

from clearhead.explain.lens import Lens
from clearhead.explain.pictures import Mark
from clearhead.explain.predictions import Prediction, Predictions
from clearhead.explain.why.target import PredictedToken
from clearhead.views.shown.base import Shown


class ShownPrediction(Shown[Prediction]):
    """The next-token distribution after one word."""

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
        """The token that really came; None after the last one."""
        return self.insight.came

    @property
    def surprise(self) -> float | None:
        """The surprise of the token that came, in bits."""
        return self.insight.surprise

    @property
    def rest(self) -> float:
        """The probability of all other tokens together."""
        return self.insight.rest


class ShownPredictions(Shown[Predictions]):
    """What the model says next at every position of a text, and what really came."""

    @property
    def all(self) -> tuple[Prediction, ...]:
        """One prediction for each token of the text."""
        return self.insight.all

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The words."""
        return self.insight.marks

    @property
    def tokens(self) -> tuple[str, ...]:
        """The token at each position."""
        return self.insight.tokens

    @property
    def bits(self) -> float:
        """The mean surprise of the tokens that came, in bits."""
        return self.insight.bits


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
    def first(self) -> tuple[int, ...]:
        """For each word the first layer at which it is the likeliest."""
        return self.insight.first

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The words."""
        return self.insight.marks
