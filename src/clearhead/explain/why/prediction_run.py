"""The run of a prediction: a text through the model, with its logits at one position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import about
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.changes import changes_of
from clearhead.explain.interventions.places import layers_of
from clearhead.explain.make_look import checked_text, evaluating, read_passage
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.why.sublayers import Capture, Captured
from clearhead.explain.why.target import no_predictions, token_text
from clearhead.generation.prompt import decoder_start_ids, prompt_ids
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.heads import LanguageHead, MaskedHead
from clearhead.text.token import Token
from clearhead.trace.passage import Passage

Text: TypeAlias = str | Sequence[int]


@dataclass(frozen=True, eq=False)
class PredictionRun:
    """One forward: the logits at a position, and what every sublayer read and wrote there."""

    loaded: Loaded
    passage: Passage
    source: Passage | None  # what the encoder of an encoder-decoder read
    position: int
    logits: Float[Tensor, " vocab"]  # as the model returned them
    uncapped: Float[Tensor, " vocab"]  # before the softcap; the same where there is none
    captured: Captured

    @property
    def id(self) -> int:
        """The token at the position."""
        return self.passage.tokens[self.position].id


def run_for(
    loaded: Loaded, text: Text, *, position: int | str | None = None, source: Text | None = None
) -> PredictionRun:
    """Run the model on a text, or on token ids. The position is a word or its number."""
    if not predicts(loaded):
        raise no_predictions(loaded)
    if loaded.config.kind == "encoder-decoder":
        return _encoder_decoder_run(loaded, text, position, source)
    if source is not None:
        raise InputError(f"a source is for encoder-decoders; {loaded.name} is none.")
    passage = read_text(loaded, text)
    return run_at(loaded, passage, position_of(loaded, passage, position))


def run_at(loaded: Loaded, passage: Passage, place: int) -> PredictionRun:
    """Run a decoder or a masked-language model; ``place`` is a token's position."""
    changed = any(changes_of(layer) for _, (_, layer) in layers_of(loaded))
    if loaded.config.kind == "decoder" and not changed:
        # What comes later cannot change what is predicted here; a patch wants the whole text.
        passage = Passage(passage.text, passage.tokens[: place + 1])
    ids = [token.id for token in passage.tokens]
    model = loaded.model
    assert isinstance(model, Decoder | Encoder)
    capture = Capture(model.stack, [place])
    with evaluating(loaded), capture.running():
        row = torch.tensor([ids], device=next(model.parameters()).device)
        at_end = isinstance(model, Decoder) and place == len(ids) - 1
        logits = model(row, last_only=True) if at_end else model(row)
    last = logits[0, -1 if at_end else place]
    return _finished(loaded, passage, None, place, last, capture.captured())


def read_text(loaded: Loaded, text: Text) -> Passage:
    """The tokens of a text, or given token ids, as the model reads them."""
    if isinstance(text, str):
        return read_passage(loaded, checked_text(text))
    with about("text"):
        ids = prompt_ids(loaded, text)
    return Passage("", tuple(Token(id, token_text(loaded, id), 0, 0, False) for id in ids))


def _start(loaded: Loaded) -> Token:
    """The token that the decoder of an encoder-decoder starts from."""
    id = decoder_start_ids(loaded)[0]
    return Token(id, token_text(loaded, id), 0, 0, special=True)


def predicts(loaded: Loaded) -> bool:
    """True if the model predicts tokens."""
    return isinstance(getattr(loaded.model, "head", None), LanguageHead | MaskedHead)


def _encoder_decoder_run(
    loaded: Loaded, text: Text, position: int | str | None, source: Text | None
) -> PredictionRun:
    """The encoder reads the source, the decoder the text so far."""
    if source is None:
        raise InputError(
            f"{loaded.name} is an encoder-decoder: why wants the source that its encoder reads, "
            "and the text that its decoder has written so far.",
            hint='ch.why("dates", "2021-", source="3rd of March 2021"), in a terminal --source',
        )
    with about("source"):
        read = read_text(loaded, source)
    written = read_text(loaded, text).tokens if text else ()
    eos = loaded.config.eos
    while written and written[-1].id in eos:
        written = written[:-1]
    shown = text if isinstance(text, str) else ""
    whole = Passage(shown, (_start(loaded), *written))
    place = position_of(loaded, whole, position)
    whole = Passage(shown, whole.tokens[: place + 1])
    model = loaded.model
    assert isinstance(model, EncoderDecoder)
    capture = Capture(model.decoder, [place])
    device = next(model.parameters()).device
    with evaluating(loaded), capture.running():
        states, counts = model.encode(
            torch.tensor([[token.id for token in read.tokens]], device=device)
        )
        ids = torch.tensor([[token.id for token in whole.tokens]], device=device)
        logits = model.decode(ids, states, counts, last_only=True)
    return _finished(loaded, whole, read, place, logits[0, -1], capture.captured())


def _finished(
    loaded: Loaded,
    passage: Passage,
    source: Passage | None,
    place: int,
    logits: Float[Tensor, " vocab"],
    captured: Captured,
) -> PredictionRun:
    uncapped = logits
    if loaded.config.output_softcap is not None:
        uncapped = uncapped_logits(loaded, captured.final.to(logits.dtype))[0]
    return PredictionRun(loaded, passage, source, place, logits, uncapped, captured)


def uncapped_logits(
    loaded: Loaded, final: Float[Tensor, "row model"]
) -> Float[Tensor, "row vocab"]:
    """The model's own head, applied to final states, without its softcap."""
    head = loaded.model.head
    assert isinstance(head, LanguageHead | MaskedHead)
    vocabulary = head.vocabulary if isinstance(head, MaskedHead) else head
    cap, vocabulary.softcap = vocabulary.softcap, None
    try:
        with torch.no_grad():
            logits: Tensor = head(final[None], token_embedding(loaded))[0]
            return logits
    finally:
        vocabulary.softcap = cap


def token_embedding(loaded: Loaded) -> Float[Tensor, "vocab model"]:
    """The matrix of token embeddings that a tied output head uses: a decoder's own."""
    model = loaded.model
    stack = model.decoder if isinstance(model, EncoderDecoder) else model.stack
    weight: Tensor = stack.embedding.tokens.weight
    return weight


def position_of(loaded: Loaded, passage: Passage, position: int | str | None) -> int:
    """The token at which the prediction stands: the last of the chosen word."""
    if position is None:
        masked = loaded.config.kind == "encoder"
        return _mask_place(passage) if masked else len(passage) - 1
    marks = marks_of(passage, len(passage), words=True)
    with about("position"):
        return marks[find_mark(marks, position)].tokens[-1]


def _mask_place(passage: Passage) -> int:
    """The first mask token of the text, which a masked-language model fills."""
    for place, token in enumerate(passage.tokens):
        if token.special and "mask" in token.text.casefold():
            return place
    raise InputError(
        "a masked-language model predicts the token at a place: which one?",
        hint='put its mask token into the text ("The capital of France is [MASK]."), or name a '
        "word: position=…",
    )
