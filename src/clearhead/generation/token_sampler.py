"""The sampling step: the next token of each row, with the model's probability of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.generation import sampling
from clearhead.generation.event import Alternative
from clearhead.generation.row import Row
from clearhead.generation.settings import Settings
from clearhead.generation.sound_logits import refuse_no_choice, refuse_unsound
from clearhead.generation.token_rules import TokenRules
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class SampledToken:
    """A token with the model's own probability, and the most likely ones if they are wanted."""

    token: int
    probability: float
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class TokenSampler:
    """Samples one token for each row from the logits of a batch.

    ``alternatives`` is the number of most likely tokens that are reported with each.
    """

    settings: Settings
    tokenizer: Tokenizer | None
    alternatives: int = 0
    rules: TokenRules = field(default_factory=TokenRules)

    def sample(
        self, logits: Float[Tensor, "batch vocab"], rows: Sequence[Row]
    ) -> list[SampledToken]:
        """Sample the next token of each row."""
        logits = tokenizer_logits(logits, self.tokenizer)
        refuse_unsound(logits)
        tokens = self._tokens(logits, rows)
        sampled = logits.gather(1, torch.tensor(tokens)[:, None])[:, 0]
        log_sums = logits.logsumexp(-1)
        probabilities = (sampled - log_sums).exp().tolist()
        alternatives = [
            self._alternatives(logits[i], float(log_sums[i]), row) for i, row in enumerate(rows)
        ]
        found = zip(tokens, probabilities, alternatives, strict=True)
        return [SampledToken(*each) for each in found]

    def _tokens(self, logits: Float[Tensor, "batch vocab"], rows: Sequence[Row]) -> list[int]:
        prompts, texts = [row.prompt for row in rows], [row.ids for row in rows]
        changed = self.rules.apply(self.settings.penalised(logits, prompts, texts), rows)
        if changed is not logits:
            refuse_no_choice(changed)
        if self.settings.greedy:
            return sampling.greedy(changed)
        uniform = [row.generator.random() for row in rows]
        return sampling.sample(self.settings.filtered(changed), uniform)

    def _alternatives(
        self, logits: Float[Tensor, " vocab"], log_sum: float, row: Row
    ) -> tuple[Alternative, ...]:
        if not self.alternatives:
            return ()
        top = logits.topk(min(self.alternatives, len(logits)))
        previous = row.ids[-1] if row.ids else row.prompt[-1]
        probabilities = (top.values - log_sum).exp().tolist()
        return tuple(
            Alternative(token, self._token_text(token, previous), probability)
            for token, probability in zip(top.indices.tolist(), probabilities, strict=True)
        )

    def _token_text(self, token: int, previous: int) -> str:
        """Decode a token after the previous one: alone, some tokens lose their space."""
        if self.tokenizer is None:
            return ""
        before = self.tokenizer.decode([previous], skip_special=False)
        both = self.tokenizer.decode([previous, token], skip_special=False)
        if both.startswith(before):
            return both[len(before) :]
        return self.tokenizer.decode([token], skip_special=False)


def tokenizer_logits(
    logits: Float[Tensor, "batch vocab"], tokenizer: Tokenizer | None
) -> Float[Tensor, "batch tokenizer_vocab"]:
    """Drop the entries beyond the tokenizer's: some models pad their vocabulary."""
    if tokenizer is None or tokenizer.size >= logits.shape[-1]:
        return logits
    return logits[:, : tokenizer.size]
