"""Training objectives: a batch in, the sum of the losses of its targets out.

=======================  ==========================================================
``objective``            the interface; objectives whose targets are tokens
``next_token``           the next token of a text or of a chat
``target_given_source``  the target of a source
``masked_token``         masked tokens, from both sides
``matching_sentences``   the sentence that belongs to another one: embeddings
``choice``               the objective that fits a model
=======================  ==========================================================
"""

from clearhead.training.objectives.choice import objective_of
from clearhead.training.objectives.masked_token import MaskedToken
from clearhead.training.objectives.matching_sentences import MatchingSentences
from clearhead.training.objectives.next_token import NextToken, packed_states
from clearhead.training.objectives.objective import Objective, PredictedTokens
from clearhead.training.objectives.target_given_source import TargetGivenSource

__all__ = [
    "MaskedToken",
    "MatchingSentences",
    "NextToken",
    "Objective",
    "PredictedTokens",
    "TargetGivenSource",
    "objective_of",
    "packed_states",
]
