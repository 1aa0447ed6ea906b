"""Mean outputs of heads and feed-forward layers, over the positions of some texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from clearhead.arguments import about, several
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.places import Place
from clearhead.explain.make_look import evaluating, read_passage
from clearhead.explain.roles.corpus.built_in_text import built_in_sentences
from clearhead.generation.generate import generate

SENTENCES = 32  # of the built-in text
WRITTEN = 32  # tokens that an encoder-decoder writes for each text


def mean_outputs(
    loaded: Loaded, places: Sequence[Place], over: str | Sequence[str] | None
) -> list[Tensor]:
    """For each place the mean vector: of all heads side by side, or of a feed-forward layer."""
    sums = [MeanOutput() for _ in places]
    with ExitStack() as hooks:
        for place, total in zip(places, sums, strict=True):
            hooks.enter_context(place.outputs.read_by(total.add))
        for text in _texts(loaded, over):
            with about("over"):
                _run(loaded, text)
    return [total.mean() for total in sums]


class MeanOutput:
    """The mean of vectors, collected in float64 forward by forward.

    ``real`` says which of them count: (batch, query), True for tokens and False for padding.
    """

    def __init__(self) -> None:
        self.real: Bool[Tensor, "batch query"] | None = None
        self.count = 0
        self._total: Tensor | None = None

    def add(self, vectors: Float[Tensor, "*places width"]) -> None:
        """Add the outputs of one forward."""
        flat = vectors.flatten(0, -2)
        if self.real is not None:
            flat = flat[_real_places(self.real, vectors)]
        part = flat.sum(dim=0, dtype=torch.float64)
        self._total = part if self._total is None else self._total + part
        self.count += len(flat)

    def mean(self) -> Float[Tensor, " width"]:
        """The mean so far."""
        assert self._total is not None
        return (self._total / self.count).float()


def _real_places(
    real: Bool[Tensor, "batch query"], vectors: Float[Tensor, "*places width"]
) -> Bool[Tensor, " place"]:
    """The places of real tokens; behind the rows of a batch there may be added ones."""
    places = torch.zeros(vectors[..., 0].numel(), dtype=torch.bool, device=vectors.device)
    if len(vectors) >= len(real):
        places[: real.numel()] = real.flatten().to(vectors.device)
    else:  # packed: real tokens only
        places[: int(real.sum())] = True
    return places


def _texts(loaded: Loaded, over: str | Sequence[str] | None) -> list[str]:
    if over is None:
        if loaded.config.kind == "encoder-decoder":
            raise InputError(
                f"{loaded.name} is an encoder-decoder: the mean of an output needs texts that it "
                "is made for.",
                hint="give some of them: over=[…]",
            )
        return [sentence.text for sentence in islice(built_in_sentences(), SENTENCES)]
    texts = [over] if isinstance(over, str) else several("over", over, "texts")
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError("over is a text or several, none of them empty.")
    return texts


def _run(loaded: Loaded, text: str) -> None:
    if loaded.config.kind == "encoder-decoder":
        for _ in generate(loaded, text, max_tokens=WRITTEN, temperature=0, engine=False):
            pass
        return
    ids = [token.id for token in read_passage(loaded, text).tokens]
    with evaluating(loaded):
        loaded.model(torch.tensor([ids], device=next(loaded.model.parameters()).device))
