"""Mean outputs of heads and feed-forward layers, over the positions of some texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

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
    sums = [_Sum() for _ in places]
    with ExitStack() as hooks:
        for place, total in zip(places, sums, strict=True):
            hooks.callback(_attached(place, total).remove)
        for text in _texts(loaded, over):
            with about("over"):
                _run(loaded, text)
    return [total.mean() for total in sums]


class _Sum:
    """A sum of vectors in float64, and how many they are."""

    def __init__(self) -> None:
        self.total: Tensor | None = None
        self.count = 0

    def add(self, vectors: Tensor) -> None:
        flat = vectors.detach().flatten(0, -2)
        part = flat.sum(dim=0, dtype=torch.float64)
        self.total = part if self.total is None else self.total + part
        self.count += len(flat)

    def mean(self) -> Tensor:
        assert self.total is not None
        return (self.total / self.count).float()


def _attached(place: Place, total: _Sum) -> Any:
    def add_inputs(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        total.add(args[0])

    def add_output(_module: nn.Module, _args: Any, output: Tensor) -> None:
        total.add(output)

    if place.heads:
        return place.attention.output.register_forward_pre_hook(add_inputs)
    return place.layer.register_forward_hook(add_output)


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
