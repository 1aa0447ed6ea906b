"""Sampling settings: all of them, checked once, and the order in which they apply."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.generation import penalties, sampling
from clearhead.generation.sampling import Number


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings by which a token is sampled from logits.

    Order: repetition penalty, presence and frequency penalties, logit bias, temperature, top-k,
    top-p, min-p, typical; then sampling. A temperature of 0 takes the most likely token.
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

    def __post_init__(self) -> None:
        fraction = "above 0 and at most 1"
        _check(
            "temperature", self.temperature, lambda t: t >= 0, "0 (the most likely token) or above"
        )
        _check("top_k", self.top_k, lambda k: isinstance(k, int) and k >= 1, "whole, 1 or more")
        _check("top_p", self.top_p, lambda p: 0 < p <= 1, fraction)
        _check("min_p", self.min_p, lambda p: 0 <= p <= 1, "from 0 to 1")
        _check("typical", self.typical, lambda p: 0 < p <= 1, fraction)
        _check("repetition_penalty", self.repetition_penalty, lambda p: p > 0, "above 0 (1: none)")
        for name in ("presence_penalty", "frequency_penalty"):
            _check(name, getattr(self, name), math.isfinite, "a finite number (0: none)")
        if not _is_bias(self.logit_bias):
            raise InputError(
                "logit_bias maps token ids to numbers, finite or -inf; got "
                f"{reprlib.repr(self.logit_bias)}."
            )

    @property
    def greedy(self) -> bool:
        """True if the most likely token is always taken."""
        return self.temperature == 0.0

    def check_vocabulary(self, vocab: int) -> None:
        """Raise an InputError if logit_bias names a token that the model does not have."""
        for token in self.logit_bias:
            if not 0 <= token < vocab:
                raise InputError(
                    f"logit_bias: token {token} is not in this vocabulary of {vocab} entries."
                )

    def penalised(
        self,
        logits: Float[Tensor, "batch vocab"],
        prompts: Sequence[Sequence[int]],
        texts: Sequence[Sequence[int]],
    ) -> Float[Tensor, "batch vocab"]:
        """Apply penalties and bias: these matter to greedy decoding, too."""
        vocab = logits.shape[-1]
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
        if self.top_k is not None:
            logits = sampling.keep_top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = sampling.keep_top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = sampling.keep_min_p(logits, self.min_p)
        return logits if self.typical is None else sampling.keep_typical(logits, self.typical)


def _check(name: str, value: Any, good: Callable[[Any], bool], wanted: str) -> None:
    if value is None:
        return
    if not _is_number(value) or not math.isfinite(value) or not good(value):
        raise InputError(f"{name} must be {wanted}; got {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_bias(bias: object) -> bool:
    return isinstance(bias, Mapping) and all(
        isinstance(token, int) and _is_number(value) and value < math.inf
        for token, value in bias.items()
    )
