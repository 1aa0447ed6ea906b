"""``ch.patch_map``: which words, layers and heads carry an answer, shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from clearhead.arguments import shown
from clearhead.checkpoints.load import Loaded, load
from clearhead.errors import InputError
from clearhead.explain.patched.make_patch_map import make_patch_map
from clearhead.explain.patched.patch_map import PatchedHead, PatchMap
from clearhead.explain.pictures import Mark
from clearhead.explain.why.target import PredictedToken
from clearhead.views import tables
from clearhead.views.formats import FORMATS
from clearhead.views.patched.html import patch_frame, patch_page
from clearhead.views.patched.svg import draw_patch_map
from clearhead.views.patched.tables import patch_rows
from clearhead.views.patched.terminal import patch_parts
from clearhead.views.shown.base import Shown
from clearhead.views.svg import render as svg
from clearhead.views.terminal import render as terminal

# Entered here and not there, so that a look need not load what a patch map consists of.
terminal.RENDERERS[PatchMap] = patch_parts
svg.RENDERERS[PatchMap] = draw_patch_map
tables.CSV[PatchMap] = patch_rows


def patch_map(
    model: Loaded | str | Path,
    text: str | Sequence[int],
    donor: str | Sequence[int],
    token: int | str | None = None,
    instead: int | str | None = None,
    *,
    position: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ShownPatchMap:
    """Show which words, layers and heads carry the answer in which two texts differ.

    The two texts differ in a word: "The capital of France is" and "The capital of Italy is". Every
    state, every layer's output and every head's output of the second text is put into the run of
    the first, one at a time, in real runs. A share of 0 is the first text's answer, 1 the second's:

        share = (target − target when patched) / (target − target of the donor)
        target = logit(token) − logit(instead)

        >>> import torch, clearhead as ch
        >>> from pathlib import Path
        >>> from clearhead.checkpoints.load import Loaded
        >>> from clearhead.text.characters import CharacterTokenizer
        >>> config = ch.ModelConfig(
        ...     kind="decoder", vocab=97, context=64, model=24, layers=2, heads=3, feed_forward=48
        ... )
        >>> letters, _ = CharacterTokenizer("abc "), torch.manual_seed(0)
        >>> loaded = Loaded("small", Path(), ch.Decoder(config).eval(), config, letters)
        >>> found = ch.patch_map(loaded, "a b a", "a c a", "a", "b")
        >>> found.states.shape, found.heads.shape, found.exact
        ((2, 5), (2, 3), True)

    Args:
        model: a decoder or masked-language model of ``ch.load``, or the name or path of one.
        text: the text that is run, or its token ids.
        donor: the text whose outputs are taken: as many tokens, in the same places.
        token: the answer of the text; its likeliest token unless given.
        instead: the answer of the donor; its likeliest token unless given.
        position: the word of the text whose prediction is measured ("their", "they#2"), or its
            number; the last one unless given.
        progress: called with the number of blocks that were run, and of all of them.

    Returns:
        The map, which shows itself: ``.states``, ``.attention`` and ``.feed_forward`` (layers ×
        words), ``.heads`` (layers × heads), ``.strongest``.

    Raises:
        InputError: the texts do not align token by token, or give the same answer; the model
            predicts no tokens; a token is not one of its vocabulary.
    """
    loaded = load(model) if isinstance(model, str | Path) else model
    if not isinstance(loaded, Loaded):
        raise InputError(
            f"patch_map wants a model of ch.load, or the name of one; got {type(loaded).__name__}.",
            hint="a trace cannot be run again: only a model can be patched.",
        )
    for name, given in (("text", text), ("donor", donor)):
        if not isinstance(given, str | Sequence) or isinstance(given, bytes):
            raise InputError(
                f"{name} is a text or a list of token ids; got {type(given).__name__}."
            )
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {shown(progress)}.")
    made = make_patch_map(
        loaded, text, donor, token=token, instead=instead, position=position, progress=progress
    )
    return ShownPatchMap(made)


class ShownPatchMap(Shown[PatchMap]):
    """Two texts patched into each other: states, outputs and heads that carry the answer."""

    formats: ClassVar[Mapping[str, Callable[[Any], bytes]]] = {
        **FORMATS,
        "html": lambda found: patch_page(found).encode(),
    }

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_()
        return bundle | {"text/html": patch_frame(self.insight, bundle["text/html"])}

    @property
    def text(self) -> str:
        """The text that is run."""
        return self.insight.text

    @property
    def donor(self) -> str:
        """The text whose outputs are taken."""
        return self.insight.donor

    @property
    def token(self) -> PredictedToken:
        """The answer of the text, as the text predicts it."""
        return self.insight.token

    @property
    def instead(self) -> PredictedToken:
        """The answer of the donor, as the text predicts it."""
        return self.insight.instead

    @property
    def target(self) -> float:
        """logit(token) − logit(instead), of the text."""
        return self.insight.target

    @property
    def donor_target(self) -> float:
        """The same of the donor."""
        return self.insight.donor_target

    @property
    def columns(self) -> tuple[Mark, ...]:
        """The words of the text."""
        return self.insight.columns

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers."""
        return self.insight.layers

    @property
    def states(self) -> Float[np.ndarray, "layer column"]:
        """Shares of the residual stream behind each layer, at each word."""
        return self.insight.states

    @property
    def attention(self) -> Float[np.ndarray, "layer column"]:
        """Shares of what all heads of each layer put out, at each word."""
        return self.insight.attention

    @property
    def feed_forward(self) -> Float[np.ndarray, "layer column"]:
        """Shares of what each feed-forward layer puts out, at each word."""
        return self.insight.feed_forward

    @property
    def heads(self) -> Float[np.ndarray, "layer head"]:
        """The share of each head, patched at all positions."""
        return self.insight.heads

    @property
    def strongest(self) -> tuple[PatchedHead, ...]:
        """All heads, the largest share first."""
        return self.insight.strongest

    @property
    def whole(self) -> float:
        """The share when all words are patched behind the first layer."""
        return self.insight.whole

    @property
    def exact(self) -> bool:
        """True if that is 1, within 1e-3: the patched run is then the donor's."""
        return self.insight.exact

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the numbers, as sentences."""
        return self.insight.notes
