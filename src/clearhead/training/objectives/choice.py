"""The objective that fits a model's kind and its output head."""

from __future__ import annotations

from clearhead.errors import InputError
from clearhead.models.build import Model
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.objectives.masked_token import MaskedToken
from clearhead.training.objectives.matching_sentences import MatchingSentences
from clearhead.training.objectives.next_token import NextToken
from clearhead.training.objectives.objective import Objective
from clearhead.training.objectives.target_given_source import TargetGivenSource


def objective_of(model: Model) -> Objective:
    """The objective that fits a model.

    Raises:
        InputError: there is none for its output head.
    """
    if isinstance(model, Decoder):
        return NextToken(model)
    if isinstance(model, EncoderDecoder):
        return TargetGivenSource(model)
    if model.config.head == "masked":
        return MaskedToken(model)
    if model.config.head in ("embedding", "none"):
        return MatchingSentences(model)
    raise InputError(
        "a model that tells labels apart cannot be trained further: labelled texts are not known.",
        hint="an encoder is trained on texts with a head for masked tokens, or on pairs of "
        "sentences with embeddings.",
    )
