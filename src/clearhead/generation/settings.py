"""Sampling settings: all of them, checked once, and the order in which they apply."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import real_number, shown, whole_number
from clearhead.errors import InputError
from clearhead.generation import penalties, sampling
from clearhead.generation.sampling import Number

LARGE, TINY = 1e6, 1e-300  # penalties beyond LARGE are computed in float64


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings by which a token is sampled from logits.

    Order: repetition penalty, presence and frequency penalties, logit bias, temperature, top-k,
    top-p, min-p, typical; then sampling. A temperature of 0 takes the most likely token. Each
    filter keeps at least ``min_tokens_to_keep`` tokens.
    """

    temperature: Number = 1.0
    top_k: int | None = None
    top_p: Number | None = None
    min_p: Number | None = None
    typical: Number | None = None
    repetition_penalty: Number = 1.0
    presence_penalty: Number = 0.0
    frequency_penalty: Number = 0.0
    logit_bias: Mapping[int, Number] = field(default_factory=dict)
    min_tokens_to_keep: int = 1

    def __post_init__(self) -> None:
        self._set("temperature", real_number("temperature", self.temperature, least=0))
        self._set(
            "min_tokens_to_keep",
            whole_number("min_tokens_to_keep", self.min_tokens_to_keep, least=1),
        )
        if self.top_k is not None:
            self._set("top_k", whole_number("top_k", self.top_k, least=1))
        if self.min_p is not None:
            self._set("min_p", real_number("min_p", self.min_p, least=0, most=1))
        for name in ("top_p", "typical"):
            if getattr(self, name) is not None:
                self._set(name, real_number(name, getattr(self, name), above=0, most=1))
        penalty = real_number("repetition_penalty", self.repetition_penalty, above=0)
        self._set("repetition_penalty", penalty)
        for name in ("presence_penalty", "frequency_penalty"):
            self._set(name, real_number(name, getattr(self, name)))
        if not _is_bias(self.logit_bias):
            raise InputError(
                "logit_bias maps token ids to numbers, finite or -inf; got "
                f"{shown(self.logit_bias)}."
            )

    def _set(self, name: str, number: float | int) -> None:
        """Keep a number as the plain one that it stands for: a Fraction, a very long integer …"""
        object.__setattr__(self, name, number)

    @property
    def greedy(self) -> bool:
        """True if the most likely token is always taken."""
        return self.temperature == 0.0

    def check_vocabulary(self, vocab: int) -> None:
        """Raise an InputError if logit_bias names a token that the model does not have."""
        for token in self.logit_bias:
            if not 0 <= token < vocab:
                raise InputError(
                    f"logit_bias: token {shown(token)} is not in this vocabulary of {vocab} "
                    "entries."
                )

    def penalised(
        self,
        logits: Float[Tensor, "batch vocab"],
        prompts: Sequence[Sequence[int]],
        texts: Sequence[Sequence[int]],
    ) -> Float[Tensor, "batch vocab"]:
        """Apply penalties and bias: these matter to greedy decoding, too."""
        vocab = logits.shape[-1]
        if self._extreme:
            logits = logits.double()
        if self.repetition_penalty != 1.0:
            rows = [[*prompt, *text] for prompt, text in zip(prompts, texts, strict=True)]
            counts = penalties.token_counts(rows, vocab)
            logits = penalties.with_repetition_penalty(logits, counts, self.repetition_penalty)
        if self.presence_penalty or self.frequency_penalty:
            counts = penalties.token_counts(texts, vocab)
            logits = penalties.with_presence_and_frequency(
                logits, counts, self.presence_penalty, self.frequency_penalty
            )
        return penalties.with_bias(logits, self.logit_bias) if self.logit_bias else logits

    def filtered(self, logits: Float[Tensor, "batch vocab"]) -> Float[Tensor, "batch vocab"]:
        """Apply temperature and filters: the result is the distribution to sample from."""
        logits = sampling.with_temperature(logits, self.temperature)
        least = self.min_tokens_to_keep
        if self.top_k is not None:
            logits = sampling.keep_top_k(logits, max(self.top_k, least))
        if self.top_p is not None:
            logits = sampling.keep_top_p(logits, self.top_p, least)
        if self.min_p is not None:
            logits = sampling.keep_min_p(logits, self.min_p, least)
        if self.typical is not None:
            logits = sampling.keep_typical(logits, self.typical, least)
        return logits

    @property
    def _extreme(self) -> bool:
        """True if float32 might not hold what penalties and bias make of logits."""
        numbers = (
            *(self.repetition_penalty, 1 / max(self.repetition_penalty, TINY)),
            *(self.presence_penalty, self.frequency_penalty),
            *(value for value in self.logit_bias.values() if value > -math.inf),
        )
        return any(abs(number) > LARGE for number in numbers)


def _is_bias(bias: object) -> bool:
    return isinstance(bias, Mapping) and all(
        isinstance(token, int) and not isinstance(token, bool) and _is_bias_value(value)
        for token, value in bias.items()
    )


def _is_bias_value(value: object) -> bool:
    """True for a number that a float can hold, or −∞."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max or value == -math.inf
