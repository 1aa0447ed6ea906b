"""Targets: the logit that is explained, or the difference of two, as a direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import about
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.why.direction import Direction
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.heads import LanguageHead, MaskedHead

HEAD_BIAS = "output head"


@dataclass(frozen=True)
class PredictedToken:
    """A token of the vocabulary as a prediction: its logit, probability and rank in this run."""

    id: int
    text: str
    logit: float  # after the softcap, if there is one: as the model returns it
    probability: float
    rank: int  # 1 is the likeliest


def predicted(loaded: Loaded, logits: Float[Tensor, " vocab"], id: int) -> PredictedToken:
    """Describe a token as a prediction of these logits."""
    logit, sampled = float(logits[id].double()), sampled_logits(loaded, logits).double()
    there = id < len(sampled)
    probability = float(torch.softmax(sampled, dim=0)[id]) if there else 0.0
    rank = int((sampled > logit).sum()) + 1
    return PredictedToken(id, token_text(loaded, id), logit, probability, rank)


def sampled_logits(
    loaded: Loaded, logits: Float[Tensor, "*row vocab"]
) -> Float[Tensor, "*row tokenizer_vocab"]:
    """The logits of the tokens that the model can say: those that its tokenizer has."""
    many = logits.shape[-1] if loaded.tokenizer is None else loaded.tokenizer.size
    return logits[..., :many]


def token_text(loaded: Loaded, id: int) -> str:
    """The text of a token, with its leading space; its piece if it is a special token.

    Of a token that no tokenizer knows, its number: models often have more rows than their tokenizer
    has entries.
    """
    tokenizer = loaded.tokenizer
    if tokenizer is None or id >= tokenizer.size:
        return f"#{id}"
    return tokenizer.decode([id]) or tokenizer.piece(id)


def token_id(loaded: Loaded, token: int | str, what: str = "token") -> int:
    """The id of a token, given as its text or id; refuse texts that are several tokens."""
    vocabulary = loaded.config.vocab
    if isinstance(token, bool) or not isinstance(token, int | str):
        raise InputError(f"{what} is a text or a token id; got {type(token).__name__}.")
    if isinstance(token, int):
        if not 0 <= token < vocabulary:
            raise InputError(f"{what} {token}: this vocabulary has ids 0 … {vocabulary - 1}.")
        return token
    if loaded.tokenizer is None:
        raise InputError(f"{loaded.name} came without a tokenizer: give {what} as a token id.")
    if not token:
        raise InputError(f"{what} is empty: wanted one token of the vocabulary, such as ' Paris'.")
    with about(what):
        ids = loaded.tokenizer.encode(token, special=False)
    if len(ids) == 1:
        return ids[0]
    split = ", ".join(repr(token_text(loaded, id)) for id in ids) or "nothing"
    raise InputError(
        f"{what} {token!r} is {len(ids)} tokens here: {split}. A prediction is one token.",
        hint=_first_of(loaded, ids) if ids else None,
    )


def _first_of(loaded: Loaded, ids: list[int]) -> str:
    """What to type for the first of some tokens: its text, or its id where that is no whole one."""
    text = token_text(loaded, ids[0])
    assert loaded.tokenizer is not None
    if loaded.tokenizer.encode(text, special=False) == ids[:1]:
        return f"take the first: {text!r}"
    return f"the first is a part of a character; in Python it has the token id {ids[0]}"


def head_direction(
    loaded: Loaded, state: Float[Tensor, " model"], token: int, instead: int | None
) -> Direction:
    """The logit (before a softcap), or the difference of two, as a reading of the final state."""
    model = loaded.model
    if isinstance(model, Decoder):
        return _language(model.head, model.stack.embedding.tokens.weight, token, instead)
    if isinstance(model, EncoderDecoder):
        return _language(model.head, model.decoder.embedding.tokens.weight, token, instead)
    assert isinstance(model, Encoder)
    head = model.head
    if not isinstance(head, MaskedHead):
        raise no_predictions(loaded)
    return _masked(head, model.stack.embedding.tokens.weight, state, token, instead)


def no_predictions(loaded: Loaded) -> InputError:
    """The error for models that predict no tokens."""
    return InputError(
        f"{loaded.name} predicts no tokens: it is an {loaded.config.kind} with the head "
        f"{loaded.config.head!r}.",
        hint="why explains decoders, encoder-decoders and masked-language models.",
    )


def softcap_of(loaded: Loaded) -> float | None:
    """The softcap of the logits; None without one."""
    return loaded.config.output_softcap


def _language(head: LanguageHead, embedding: Tensor, token: int, instead: int | None) -> Direction:
    rows = (embedding if head.weight is None else head.weight).detach()
    vector = rows[token].double()
    constant = 0.0 if head.bias is None else float(head.bias[token].detach().double())
    if instead is not None:
        vector = vector - rows[instead].double()
        constant -= 0.0 if head.bias is None else float(head.bias[instead].detach().double())
    constants = {} if head.bias is None else {HEAD_BIAS: constant}
    return Direction(vector * head.scale, constants)


def _masked(
    head: MaskedHead,
    embedding: Tensor,
    state: Float[Tensor, " model"],
    token: int,
    instead: int | None,
) -> Direction:
    """Through BERT's head: dense, activation, norm, vocabulary."""
    dense, norm = head.dense.weight.detach().double(), head.norm
    inputs = dense @ state + head.dense.bias.detach().double()
    outputs: Tensor = head.activation(inputs)
    direction = _language(head.vocabulary, embedding, token, instead)
    direction = direction.before_norm(norm, outputs, "output head's norm")
    direction = direction.before_activation(inputs, outputs)
    return direction.before_linear(head.dense, "output head's dense layer")
