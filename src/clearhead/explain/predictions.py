"""Predictions: what a model says next at each position of a text, and what really came."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.make_look import evaluating
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.why.prediction_run import predicts, token_embedding
from clearhead.explain.why.target import PredictedToken, no_predictions, token_text
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.trace.passage import Passage

KEPT = 200  # likeliest tokens of each position
ROWS = 64  # positions whose logits are computed at once


@dataclass(frozen=True)
class Prediction:
    """The next-token distribution at a position; of a masked-language model, that of the place."""

    position: int
    mark: Mark  # the word whose last token stands there
    likeliest: tuple[PredictedToken, ...]
    came: PredictedToken | None  # the token that really came; None behind the last
    surprise: float | None  # of the token that came, −log₂ of its probability, in bits

    @property
    def rest(self) -> float:
        """The probability of all tokens that are not listed."""
        return max(0.0, 1.0 - sum(token.probability for token in self.likeliest))


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions at every position of a text."""

    text: str
    model: str
    marks: tuple[Mark, ...]
    all: tuple[Prediction, ...]

    def at(self, word: int | str, top: int = 5) -> Prediction:
        """The prediction behind a word, with its ``top`` likeliest tokens."""
        whole_number("top", top, least=1, most=KEPT)
        mark = self.marks[find_mark(self.marks, word)]
        found = self.all[mark.tokens[-1]]
        return Prediction(found.position, mark, found.likeliest[:top], found.came, found.surprise)

    @property
    def bits(self) -> float:
        """The mean surprise of the tokens that came, in bits; NaN for a single token."""
        surprises = [one.surprise for one in self.all if one.surprise is not None]
        return sum(surprises) / len(surprises) if surprises else math.nan

    def __repr__(self) -> str:
        return f"Predictions({len(self.all)} positions, {self.bits:.2f} bits a token)"


def predictions_of(loaded: Loaded, passage: Passage, source: Passage | None = None) -> Predictions:
    """Run the model on a text and keep the likeliest tokens at every position."""
    states = final_states(loaded, passage, source)
    ids = [token.id for token in passage.tokens]
    masked = loaded.config.kind == "encoder"
    following = ids if masked else [*ids[1:], -1]
    marks = marks_of(passage, len(passage), words=True)
    owners = {place: mark for mark in marks for place in mark.tokens}
    found: list[Prediction] = []
    for start in range(0, len(ids), ROWS):
        logits = logits_of(loaded, states[start : start + ROWS])
        came = torch.tensor(following[start : start + ROWS])
        for row in range(len(logits)):
            place = start + row
            found.append(_prediction(loaded, logits[row], int(came[row]), place, owners[place]))
    return Predictions(passage.text, loaded.name, marks, tuple(found))


def final_states(
    loaded: Loaded, passage: Passage, source: Passage | None
) -> Float[Tensor, "query model"]:
    """What the stack returns at each position; the output head turns it into logits."""
    if not predicts(loaded):
        raise no_predictions(loaded)
    model = loaded.model
    device = next(model.parameters()).device
    ids = torch.tensor([[token.id for token in passage.tokens]], device=device)
    with evaluating(loaded):
        if isinstance(model, EncoderDecoder):
            if source is None:
                raise InputError("the predictions of an encoder-decoder need its source.")
            read = torch.tensor([[token.id for token in source.tokens]], device=device)
            states: Tensor = model.decoder(ids, context=model.encode(read)[0])
        else:
            assert isinstance(model, Decoder | Encoder)
            states = model.stack(ids)
    return states[0]


def logits_of(loaded: Loaded, states: Float[Tensor, "rows model"]) -> Float[Tensor, "rows vocab"]:
    """The logits of some states, in float64."""
    head = loaded.model.head
    assert head is not None
    with torch.no_grad():
        logits: Tensor = head(states[None], token_embedding(loaded))[0]
    return logits.double()


def _prediction(
    loaded: Loaded, logits: Float[Tensor, " vocab"], came: int, place: int, mark: Mark
) -> Prediction:
    shares = torch.log_softmax(logits, dim=0)
    best = logits.topk(min(KEPT, len(logits))).indices
    likeliest = tuple(
        _token(loaded, logits, shares, int(id), rank + 1) for rank, id in enumerate(best)
    )
    if came < 0:
        return Prediction(place, mark, likeliest, None, None)
    rank = int((logits > logits[came]).sum()) + 1
    token = _token(loaded, logits, shares, came, rank)
    return Prediction(place, mark, likeliest, token, -float(shares[came]) / math.log(2))


def _token(
    loaded: Loaded, logits: Tensor, shares: Int[Tensor, " vocab"] | Tensor, id: int, rank: int
) -> PredictedToken:
    probability = math.exp(float(shares[id]))
    return PredictedToken(id, token_text(loaded, id), float(logits[id]), probability, rank)
