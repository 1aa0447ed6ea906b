"""The lens: what a model would say after each layer, if the output head read its state there.

The final norm and the unembedding are applied to the residual stream after each block (the logit
lens, nostalgebraist 2020). The last row is the model's own prediction.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from clearhead.checkpoints.load import Loaded
from clearhead.explain.make_look import evaluating
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.predictions import final_states, logit_chunks
from clearhead.explain.why.target import token_text
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.trace.passage import Passage


@dataclass(frozen=True, eq=False)
class Lens:
    """For each layer and position the likeliest token there, and its probability."""

    text: str
    model: str
    marks: tuple[Mark, ...]
    positions: tuple[int, ...]  # the columns: the last token of each word
    ids: Int[np.ndarray, "layer position"]
    probabilities: Float[np.ndarray, "layer position"]  # of the token that is likeliest there
    final: Float[np.ndarray, "layer position"]  # of the token that the model says in the end
    tokens: tuple[tuple[str, ...], ...]  # the texts of the ids

    @property
    def appears(self) -> tuple[int, ...]:
        """For each position the layer from which on the final answer is the likeliest."""
        answers = self.ids[-1]
        found = []
        for column, answer in enumerate(answers):
            layer = len(self.ids) - 1
            while layer > 0 and self.ids[layer - 1, column] == answer:
                layer -= 1
            found.append(layer)
        return tuple(found)

    @property
    def first(self) -> tuple[int, ...]:
        """For each position the first layer at which the final answer is the likeliest."""
        return tuple(int(layer) for layer in (self.ids == self.ids[-1]).argmax(axis=0))

    def __repr__(self) -> str:
        return f"Lens({len(self.ids)} layers × {len(self.positions)} words)"


def lens_of(
    loaded: Loaded, passage: Passage, source: Passage | None = None, words: range | None = None
) -> Lens:
    """Run the model on a text and read its states after every block, at all words or at some."""
    marks = marks_of(passage, len(passage), words=True)
    marks = marks if words is None else marks[words.start : words.stop]
    with BlockStates(loaded, [mark.tokens[-1] for mark in marks]) as states:
        final_states(loaded, passage, source)
    return lens_at(loaded, passage, marks, states)


class BlockStates:
    """While its block runs: what each block of the (decoder's) stack returns at some positions."""

    def __init__(self, loaded: Loaded, positions: Sequence[int]) -> None:
        model = loaded.model
        self.stack = model.decoder if isinstance(model, EncoderDecoder) else model.stack
        self.positions = list(positions)
        self.kept: list[Tensor] = []
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> BlockStates:
        self._handles = [block.register_forward_hook(self._keep) for block in self.stack.blocks]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _keep(self, _block: nn.Module, _args: Any, output: Tensor) -> None:
        self.kept.append(output[0, self.positions].detach())


def lens_at(loaded: Loaded, passage: Passage, marks: tuple[Mark, ...], states: BlockStates) -> Lens:
    """The lens of some words, from the states that were kept at their last tokens."""
    ids, largest, final = _read(loaded, states.stack.norm, states.kept)
    text_of = functools.cache(functools.partial(token_text, loaded))
    texts = tuple(tuple(text_of(int(id)) for id in row) for row in ids)
    positions = tuple(states.positions)
    return Lens(passage.text, loaded.name, marks, positions, ids, largest, final, texts)


def _read(loaded: Loaded, norm: nn.Module | None, kept: list[Tensor]) -> tuple[Any, Any, Any]:
    """Likeliest token and its probability, and that of the final answer, layer by layer.

    The last layer is read first: its likeliest tokens are the answers.
    """
    layers, positions = len(kept), len(kept[0])
    states = torch.stack(kept[::-1]).flatten(0, 1)
    with evaluating(loaded):
        normed = states if norm is None else norm(states)
    ids = torch.empty(len(states), dtype=torch.long)
    largest, final = torch.empty(2, len(states), dtype=torch.float64)
    for start, logits in logit_chunks(loaded, normed):
        rows = slice(start, start + len(logits))
        values, ids[rows] = logits.max(dim=1)
        answers = ids[torch.arange(rows.start, rows.stop) % positions]
        totals = logits.logsumexp(dim=1)
        largest[rows] = (values - totals).exp()
        final[rows] = (logits.gather(1, answers[:, None])[:, 0] - totals).exp()
    ordered = [part.view(layers, positions).flip(0).numpy() for part in (ids, largest, final)]
    return ordered[0], ordered[1], ordered[2]
