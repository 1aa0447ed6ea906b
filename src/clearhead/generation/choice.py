"""Which token comes next in each row, and how likely the model found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import ClearheadError
from clearhead.generation import sampling
from clearhead.generation.event import Alternative
from clearhead.generation.row import Row
from clearhead.generation.settings import Settings
from clearhead.models.config import ModelConfig
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Choice:
    """A token with the model's own probability, and the likeliest ones if they were asked for."""

    token: int
    probability: float
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class Chooser:
    """Turns the logits of a batch into one token for each row."""

    settings: Settings
    tokenizer: Tokenizer | None
    alternatives: int = 0

    def choose(self, logits: Float[Tensor, "batch vocab"], rows: Sequence[Row]) -> list[Choice]:
        """The next token of each row."""
        logits = speakable(logits, self.tokenizer)
        tokens = self._tokens(logits, rows)
        picked = logits.gather(1, torch.tensor(tokens)[:, None])[:, 0]
        log_sums = logits.logsumexp(-1)
        shares = (picked - log_sums).exp().tolist()
        others = [self._others(logits[i], float(log_sums[i]), row) for i, row in enumerate(rows)]
        return [Choice(*each) for each in zip(tokens, shares, others, strict=True)]

    def _tokens(self, logits: Float[Tensor, "batch vocab"], rows: Sequence[Row]) -> list[int]:
        prompts, texts = [row.prompt for row in rows], [row.ids for row in rows]
        logits = self.settings.penalised(logits, prompts, texts)
        if not bool(logits.amax(-1).isfinite().all()):
            raise ClearheadError(
                "no token is left to choose: the model gave NaN or infinite logits, or logit_bias "
                "forbids all of them.",
                hint="are the weights whole? half precision overflows in some models.",
            )
        if self.settings.greedy:
            return sampling.likeliest(logits)
        uniform = [row.chance.random() for row in rows]
        return sampling.drawn(self.settings.narrowed(logits), uniform)

    def _others(
        self, logits: Float[Tensor, " vocab"], log_sum: float, row: Row
    ) -> tuple[Alternative, ...]:
        if not self.alternatives:
            return ()
        top = logits.topk(min(self.alternatives, len(logits)))
        before = row.ids[-1] if row.ids else row.prompt[-1]
        shares = (top.values - log_sum).exp().tolist()
        return tuple(
            Alternative(token, self._shown(token, before), share)
            for token, share in zip(top.indices.tolist(), shares, strict=True)
        )

    def _shown(self, token: int, before: int) -> str:
        """A token's text as it reads after another one: alone, some would lose their space."""
        if self.tokenizer is None:
            return ""
        alone = self.tokenizer.decode([before], skip_special=False)
        both = self.tokenizer.decode([before, token], skip_special=False)
        if both.startswith(alone):
            return both[len(alone) :]
        return self.tokenizer.decode([token], skip_special=False)


def speakable(
    logits: Float[Tensor, "batch vocab"], tokenizer: Tokenizer | None
) -> Float[Tensor, "batch speakable"]:
    """Without the entries that some models have beyond their tokenizer's, to a round number."""
    if tokenizer is None or tokenizer.size >= logits.shape[-1]:
        return logits
    return logits[:, : tokenizer.size]


def never_written(config: ModelConfig) -> tuple[int, ...]:
    """Tokens that a model may rate highly and must not write.

    Marian's models have no begin token: a text starts from padding, whose row of the output matrix
    is never trained. transformers forbids it too (``bad_words_ids``).
    """
    marian = config.kind == "encoder-decoder" and config.positions == "sinusoidal-halves"
    if not marian or config.pad is None or config.pad in config.eos:
        return ()
    return (config.pad,)
