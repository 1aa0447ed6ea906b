"""The lens: what a model would say after each layer, if the output head read its state there.

The final norm and the unembedding are applied to the residual stream behind each block (the logit
lens, nostalgebraist 2020). The last row is the model's own prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.checkpoints.load import Loaded
from clearhead.explain.make_look import evaluating
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.predictions import ROWS, final_states, logits_of
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

    def __repr__(self) -> str:
        return f"Lens({len(self.ids)} layers × {len(self.positions)} words)"


def lens_of(loaded: Loaded, passage: Passage, source: Passage | None = None) -> Lens:
    """Run the model on a text and read its states behind every block."""
    model = loaded.model
    stack = model.decoder if isinstance(model, EncoderDecoder) else model.stack
    marks = marks_of(passage, len(passage), words=True)
    positions = tuple(mark.tokens[-1] for mark in marks)
    kept: list[Tensor] = []

    def keep(_block: nn.Module, _args: Any, output: Tensor) -> None:
        kept.append(output[0, list(positions)].detach())

    handles = [block.register_forward_hook(keep) for block in stack.blocks]
    try:
        final_states(loaded, passage, source)
    finally:
        for handle in handles:
            handle.remove()
    ids, largest, final = _read(loaded, stack.norm, kept)
    texts = tuple(tuple(token_text(loaded, int(id)) for id in row) for row in ids)
    return Lens(passage.text, loaded.name, marks, positions, ids, largest, final, texts)


def _read(loaded: Loaded, norm: nn.Module | None, kept: list[Tensor]) -> tuple[Any, Any, Any]:
    """Likeliest token and its probability, and that of the final answer, layer by layer."""
    answers: Tensor | None = None
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for states in reversed(kept):
        with evaluating(loaded):
            normed = states if norm is None else norm(states)
        parts = [
            torch.softmax(logits_of(loaded, normed[start : start + ROWS]), dim=1)
            for start in range(0, len(normed), ROWS)
        ]
        shares = torch.cat(parts)
        largest, ids = shares.max(dim=1)
        answers = ids if answers is None else answers
        rows.append((ids, largest, shares.gather(1, answers[:, None])[:, 0]))
    stacked = [torch.stack(column).flip(0).numpy() for column in zip(*rows, strict=True)]
    return stacked[0], stacked[1], stacked[2]
