"""A prediction that a page asks about: what the model had read, and the position of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.marks import marks_of
from clearhead.explain.why.prediction_run import PredictionRun, predicts, run_at, run_for
from clearhead.explain.why.target import no_predictions, sampled_logits
from clearhead.generation.prompt import decoder_start_ids
from clearhead.studio.reading import whole_passage
from clearhead.trace.passage import Passage


@dataclass(frozen=True)
class Prediction:
    """One prediction of a decoder, a masked-language model or an encoder-decoder.

    ``passage`` is what the decoder or encoder has read; of an encoder-decoder, ``source`` is the
    text of the encoder, and ``passage`` is what was written so far.
    """

    loaded: Loaded
    passage: Passage
    position: int
    source: str | None = None

    def run(self) -> PredictionRun:
        """Run the model, as it is now: with what is switched off."""
        if self.source is not None:
            return run_for(self.loaded, self.ids, source=self.source)
        return run_at(self.loaded, self.passage, self.position)

    def probabilities(self) -> Float[Tensor, " vocab"]:
        """The distribution, by torch, which ablation changes."""
        logits = sampled_logits(self.loaded, self.run().logits)
        return logits.double().softmax(0).cpu()

    @property
    def ids(self) -> list[int]:
        """What was read; of an encoder-decoder, without the token that its decoder starts from."""
        return [token.id for token in self.passage.tokens]

    def in_python(self) -> dict[str, object]:
        """The arguments of ``ch.why`` for the same prediction."""
        if self.source is not None:
            return {"text": self.ids, "source": self.source}
        if self.loaded.config.kind == "decoder":
            return {"text": self.ids}
        marks = marks_of(self.passage, len(self.passage), words=True)
        word = next(i for i, mark in enumerate(marks) if self.position in mark.tokens)
        return {"text": self.passage.text or self.ids, "position": word}


def prediction_of(
    loaded: Loaded, text: str, ids: Sequence[int], position: int, written: Passage | None
) -> Prediction:
    """The prediction at a position of a text; ``written`` is what an encoder-decoder wrote of it.

    Raises:
        InputError: the model predicts nothing, or there is no such position.
    """
    if not predicts(loaded):
        raise no_predictions(loaded)
    if loaded.config.kind == "encoder-decoder":
        return _after_source(loaded, text, position, written)
    passage, _ = whole_passage(loaded, text, ids)
    if position >= len(passage):
        raise InputError(f"the text has {len(passage)} tokens; there is no position {position}.")
    if loaded.config.kind == "decoder":
        end = passage.tokens[position].end
        passage = Passage(passage.text[:end], passage.tokens[: position + 1])
    return Prediction(loaded, passage, position)


def _after_source(loaded: Loaded, text: str, position: int, written: Passage | None) -> Prediction:
    if written is None:
        raise InputError("this page shows nothing that was written yet.")
    tokens = written.tokens
    if tokens and tokens[0].id == decoder_start_ids(loaded)[0]:
        tokens = tokens[1:]
    if position > len(tokens):
        raise InputError(f"{len(tokens)} tokens were written; there is no position {position}.")
    return Prediction(loaded, Passage(written.text, tokens[:position]), position, text)


def ranked(found: Float[Tensor, " vocab"], rank: int) -> int:
    """The token of a rank in a distribution."""
    return int(torch.topk(found, min(rank + 1, len(found))).indices[-1])
