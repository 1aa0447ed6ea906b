"""``ch.why``: why a model predicts a token, as something that shows itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from clearhead.arguments import flag, shown
from clearhead.arguments import text as text_argument
from clearhead.checkpoints.load import Loaded, load
from clearhead.errors import InputError
from clearhead.explain.pictures import Mark
from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.only_watched import not_loaded
from clearhead.explain.why.parts import (
    Effects,
    HeadPart,
    LayerPart,
    SourcePart,
    Why,
    WhyProof,
)
from clearhead.explain.why.score import ScoreWhy, score_why
from clearhead.explain.why.target import PredictedToken
from clearhead.views import tables
from clearhead.views.formats import FORMATS
from clearhead.views.shown.base import Shown
from clearhead.views.svg import render as svg
from clearhead.views.terminal import render as terminal
from clearhead.views.why.html import why_frame, why_page
from clearhead.views.why.svg import draw_why
from clearhead.views.why.tables import why_rows
from clearhead.views.why.terminal import why_parts

# Entered here and not there, so that a look need not load what a why consists of.
terminal.RENDERERS[Why] = why_parts
svg.RENDERERS[Why] = draw_why
tables.CSV[Why] = why_rows


def why(
    model: Loaded | str | Path,
    text: str | Sequence[int],
    token: int | str | None = None,
    instead: int | str | None = None,
    *,
    position: int | str | None = None,
    source: str | Sequence[int] | None = None,
    effects: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ShownWhy:
    """Explain why a model predicts a token: its logit as an exact sum of what every part added.

        >>> import clearhead as ch
        >>> why = ch.why("dates", "2021-", source="3rd of March 2021")
        >>> why.token.text, why.proof.exact
        ('0', True)
        >>> why.head("C0H1").sources[0].mark.text  # cross-attention took it from
        'March'

    The sum runs over the embedding, every head with every source token, every feed-forward layer
    and the biases; norms are linear once their scale is known, which is that of this run. ``proof``
    compares the sum with the number that the model itself gave.

    Args:
        model: a model of ``ch.load``, or the name or path of one: a decoder, an encoder-decoder or
            a masked-language model.
        text: the text so far, or its token ids. A masked-language model fills its mask token.
        token: the token to explain, as text (" Paris", with its space) or as an id.
        instead: another token: the difference of the two logits is explained. With neither token,
            the likeliest is compared with the second.
        position: the word whose prediction is explained ("their", "they#2"), or its number; the
            last one unless given.
        source: the text that the encoder of an encoder-decoder reads.
        effects: whether every head is ablated in a real run as well. Unless given: if the text is
            short.
        progress: called with the number of layers done and of all layers while heads are ablated.

    Returns:
        The explanation, which shows itself: ``.total``, ``.heads``, ``.sources``, ``.effects``,
        ``.proof``.

    Raises:
        InputError: the model predicts no tokens; a token is not one of its vocabulary; the text has
            no such word.
    """
    loaded = load(model) if isinstance(model, str | Path) else model
    if not isinstance(loaded, Loaded):
        raise not_loaded(loaded, position)
    if not isinstance(text, str | Sequence) or isinstance(text, bytes):
        raise InputError(f"text is a text or a list of token ids; got {type(text).__name__}.")
    if effects is not None:
        effects = flag("effects", effects)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {shown(progress)}.")
    made = make_why(
        loaded, text, token=token, instead=instead, position=position, source=source,
        effects=effects, progress=progress,
    )  # fmt: skip
    return ShownWhy(made, loaded, text)


class ShownWhy(Shown[Why]):
    """A prediction and its parts: words, heads, layers, ablations and the proof."""

    formats: ClassVar[Mapping[str, Callable[[Any], bytes]]] = {
        **FORMATS,
        "html": lambda found: why_page(found).encode(),
    }

    def __init__(
        self, insight: Why, loaded: Loaded | None = None, read: str | Sequence[int] | None = None
    ) -> None:
        super().__init__(insight)
        self._loaded, self._read = loaded, read

    def score(self, head: str, query: int | str, key: int | str) -> ScoreWhy:
        """Why a head attends there: the score of a query and a key, as two exact sums.

        One is over what the embedding, earlier heads and feed-forward layers wrote at the query
        (the key held fixed), the other over what they wrote at the key.
        """
        if self._loaded is None or self._read is None:
            raise InputError("a score needs the model and its text: ch.why(model, text).score(…).")
        return score_why(self._loaded, self._read, head, query, key)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_()
        return bundle | {"text/html": why_frame(self.insight, bundle["text/html"])}

    @property
    def total(self) -> float:
        """The sum of all parts: the logit, or the difference of two (before a softcap)."""
        return self.insight.total

    @property
    def what(self) -> str:
        """What the total is, in words."""
        return self.insight.what

    @property
    def token(self) -> PredictedToken:
        """The token that is explained."""
        return self.insight.token

    @property
    def instead(self) -> PredictedToken | None:
        """The token that it is compared with; None: its logit alone is explained."""
        return self.insight.instead

    @property
    def text(self) -> str:
        """The text that was read."""
        return self.insight.text

    @property
    def mark(self) -> Mark:
        """The word behind which the prediction stands."""
        return self.insight.mark

    @property
    def heads(self) -> tuple[HeadPart, ...]:
        """The part of each head, with its sources; the largest first."""
        return self.insight.heads

    @property
    def sources(self) -> tuple[SourcePart, ...]:
        """The part of each word, summed over all heads; the largest first."""
        return self.insight.sources

    @property
    def feed_forwards(self) -> tuple[tuple[str, float], ...]:
        """The part of each feed-forward layer."""
        return self.insight.feed_forwards

    @property
    def embedding(self) -> tuple[tuple[str, float], ...]:
        """The parts of the last token's own embedding."""
        return self.insight.embedding

    @property
    def biases(self) -> tuple[tuple[str, float], ...]:
        """The parts of biases."""
        return self.insight.biases

    @property
    def layers(self) -> tuple[LayerPart, ...]:
        """How the sum grows from layer to layer."""
        return self.insight.layers

    @property
    def effects(self) -> Effects | None:
        """What ablating each head changes; None if it was not measured."""
        return self.insight.effects

    @property
    def proof(self) -> WhyProof:
        """The sum against the model's own number."""
        return self.insight.proof

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the numbers, as sentences."""
        return self.insight.notes

    def head(self, name: str) -> HeadPart:
        """The part of one head, by its name."""
        found = self.insight.head(text_argument("name", name))
        if found is None:
            raise InputError(
                f"name {name!r} is no head of this model.", hint="why.heads lists them: L23H4 …"
            )
        return found
