"""Predictions: what a model says next at each position of a text, and what really came."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.make_look import evaluating
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.why.prediction_run import predicts, token_embedding
from clearhead.explain.why.target import PredictedToken, no_predictions, token_text
from clearhead.generation.sound_logits import refuse_unsound
from clearhead.generation.token_sampler import tokenizer_logits
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.token import Token
from clearhead.trace.passage import Passage

KEPT = 200  # likeliest tokens of each position
ROWS = 64  # positions whose logits are computed at once, at most
LOGITS = 4_000_000  # logits that are computed at once, of a large vocabulary
NONE = -1  # in place of the token that came, where none did


@dataclass(frozen=True)
class Prediction:
    """The next-token distribution at a position; of a masked-language model, that of the place."""

    position: int
    mark: Mark  # the word whose last token stands there
    likeliest: tuple[PredictedToken, ...]
    came: PredictedToken | None  # the token that really came; None after the last one
    surprise: float | None  # of the token that came, −log₂ of its probability, in bits
    masked: bool = False  # True: what a masked-language model says at the place itself

    @property
    def rest(self) -> float:
        """The probability of all tokens that are not listed."""
        return max(0.0, 1.0 - sum(token.probability for token in self.likeliest))

    @property
    def others(self) -> tuple[PredictedToken, ...]:
        """The likeliest tokens without the one that came."""
        came = None if self.came is None else self.came.id
        return tuple(token for token in self.likeliest if token.id != came)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions at every position of a text."""

    text: str
    model: str
    marks: tuple[Mark, ...]  # the words
    tokens: tuple[str, ...]  # the token at each position, as a person reads it
    all: tuple[Prediction, ...]

    def at(self, word: int | str, top: int = 5) -> Prediction:
        """The prediction after a word (its last token), with its ``top`` likeliest tokens."""
        whole_number("top", top, least=1, most=KEPT)
        mark = self.marks[find_mark(self.marks, word)]
        found = self.all[mark.tokens[-1]]
        return replace(found, mark=mark, likeliest=found.likeliest[:top])

    def top(self, count: int) -> Predictions:
        """The same with the ``count`` likeliest tokens of each position."""
        whole_number("top", count, least=1, most=KEPT)
        fewer = (replace(one, likeliest=one.likeliest[:count]) for one in self.all)
        return replace(self, all=tuple(fewer))

    @property
    def masked(self) -> bool:
        """True if these are a masked-language model's: each is of the place itself."""
        return any(one.masked for one in self.all)

    @property
    def bits(self) -> float:
        """The mean surprise of the tokens that came, in bits; NaN for a single token."""
        surprises = [one.surprise for one in self.all if one.surprise is not None]
        return sum(surprises) / len(surprises) if surprises else math.nan

    def __repr__(self) -> str:
        return f"Predictions({len(self.all)} positions, {self.bits:.2f} bits a token)"


def has_predictions(look: Look) -> bool:
    """True if the model of a look is here, and predicts tokens."""
    loaded = look.loaded
    return loaded is not None and look.passages[0] is not None and predicts(loaded)


def readable(look: Look) -> tuple[Loaded, Passage, Passage | None]:
    """The model of a look, with the tokens that it read: what predictions are made from."""
    passage, source = look.passages
    if look.loaded is None or passage is None:
        raise InputError(
            "predictions need the model; this look is of a trace.",
            hint="ch.look(ch.load(…), text).predictions(…)",
        )
    if len(passage) == look.loaded.config.context + 1:  # written until the context was full: the
        passage = Passage(passage.text, passage.tokens[:-1])  # last token was not read
    return look.loaded, passage, source


def predictions_of(loaded: Loaded, passage: Passage, source: Passage | None = None) -> Predictions:
    """Run the model on a text and keep the likeliest tokens at every position."""
    following = came_ids(loaded, passage)
    marks = marks_of(passage, len(passage), words=True)
    owners = {place: mark for mark in marks for place in mark.tokens}
    masked = loaded.config.kind == "encoder"
    text_of = functools.cache(functools.partial(token_text, loaded))
    found: list[Prediction] = []
    for start, logits in logit_chunks(loaded, final_states(loaded, passage, source)):
        best = likeliest(logits, KEPT)
        for row in range(len(logits)):
            place = start + row
            said = _said(logits[row], best[row], following[place], text_of)
            found.append(Prediction(place, owners[place], *said, masked))
    tokens = tuple(mark.text for mark in marks_of(passage, len(passage), words=False))
    return Predictions(passage.text, loaded.name, marks, tokens, tuple(found))


def came_ids(loaded: Loaded, passage: Passage) -> list[int]:
    """For each position the id of the token that came; of a masked-language model its own.

    ``NONE`` after the last token, and at a mask, behind which the token is not known.
    """
    if loaded.config.kind == "encoder":
        return [NONE if _is_mask(token) else token.id for token in passage.tokens]
    return [*(token.id for token in passage.tokens[1:]), NONE]


def _is_mask(token: Token) -> bool:
    return token.special and "mask" in token.text.casefold()


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


def logit_chunks(
    loaded: Loaded, states: Float[Tensor, "query model"]
) -> Iterator[tuple[int, Float[Tensor, "rows vocab"]]]:
    """The logits of all positions, some rows at a time, each with the number of its first row."""
    rows = max(1, min(ROWS, LOGITS // loaded.config.vocab))
    for start in range(0, len(states), rows):
        logits = logits_of(loaded, states[start : start + rows])
        refuse_unsound(logits)
        yield start, logits


def logits_of(loaded: Loaded, states: Float[Tensor, "rows model"]) -> Float[Tensor, "rows vocab"]:
    """The logits of some states, in float64; of the tokens that the tokenizer has, as sampled."""
    head = loaded.model.head
    assert head is not None
    with torch.no_grad():
        logits: Tensor = head(states[None], token_embedding(loaded))[0]
    return tokenizer_logits(logits, loaded.tokenizer).cpu().double()


def likeliest(logits: Float[Tensor, "rows vocab"], count: int) -> Int[Tensor, "rows kept"]:
    """The ids of the likeliest tokens of each row; of equal ones the lower id comes first."""
    if count >= logits.shape[1]:
        return logits.sort(dim=1, descending=True, stable=True).indices
    values, ids = logits.topk(count + 1, dim=1)
    ids = ids[:, :count].sort(dim=1).values
    order = logits.gather(1, ids).sort(dim=1, descending=True, stable=True).indices
    found = ids.gather(1, order)
    for row in (values[:, count - 1] == values[:, count]).nonzero().flatten().tolist():
        # equal ones on both sides of the limit: topk takes any of them
        found[row] = logits[row].sort(descending=True, stable=True).indices[:count]
    return found


def _said(
    logits: Float[Tensor, " vocab"],
    best: Int[Tensor, " kept"],
    came: int,
    text_of: Callable[[int], str],
) -> tuple[tuple[PredictedToken, ...], PredictedToken | None, float | None]:
    """The likeliest tokens; the one that came, and its surprise in bits."""
    logs = logits - logits.logsumexp(0)
    ids, numbers, shares = best.tolist(), logits[best].tolist(), logs[best].exp().tolist()
    listed = tuple(
        PredictedToken(id, text_of(id), number, share, rank + 1)
        for rank, (id, number, share) in enumerate(zip(ids, numbers, shares, strict=True))
    )
    if came == NONE:
        return listed, None, None
    log, rank = float(logs[came]), int((logits > logits[came]).sum()) + 1
    token = PredictedToken(came, text_of(came), float(logits[came]), math.exp(log), rank)
    return listed, token, -log / math.log(2)
