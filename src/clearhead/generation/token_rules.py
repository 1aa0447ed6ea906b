"""Rules that forbid or force tokens, whatever their logits: pure functions of what is written."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.models.config import ModelConfig


@runtime_checkable
class Written(Protocol):
    """A text in the making: the tokens before it, its own, and the largest number of them."""

    @property
    def prompt(self) -> Sequence[int]:
        """The tokens before the text; of an encoder-decoder, the decoder's start token."""
        ...

    @property
    def ids(self) -> Sequence[int]:
        """The tokens of the text."""
        ...

    @property
    def limit(self) -> int:
        """The largest number of tokens of the text."""
        ...


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """The rules of one call. Their meaning is that of transformers' options of similar names.

    Attributes:
        ends: tokens that end a text; forbidden below the minimum length.
        suppressed: tokens that never come; ``suppressed_first``: not as the first one.
        bad_tokens: the same as ``suppressed``, unless a token is forced.
        bad_words: runs of two or more tokens that never come whole.
        no_repeat_ngram_size: no run of so many tokens comes twice, the prompt included; 0: off.
        min_tokens: tokens of the text before it may end; ``min_length`` counts the prompt too.
        forced_first: the token after a prompt of one token (a decoder's start token).
        forced_last: the tokens to choose from at the maximum length.
    """

    ends: tuple[int, ...] = ()
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()
    bad_tokens: tuple[int, ...] = ()
    bad_words: tuple[tuple[int, ...], ...] = ()
    no_repeat_ngram_size: int = 0
    min_tokens: int = 0
    min_length: int = 0
    forced_first: int | None = None
    forced_last: tuple[int, ...] = ()

    @functools.cached_property
    def _any(self) -> bool:
        """True if there is any rule: most calls have none."""
        return replace(self, ends=()) != TokenRules()

    def apply(
        self, logits: Float[Tensor, "batch vocab"], rows: Sequence[Written]
    ) -> Float[Tensor, "batch vocab"]:
        """Return logits with −∞ for forbidden tokens; those of a forced one are 0 and −∞."""
        if not self._any:
            return logits
        changed = None
        for index, row in enumerate(rows):
            forced, banned = self._forced(row), self._forbidden(row)
            if not forced and not banned:
                continue
            changed = logits.clone() if changed is None else changed
            if forced:
                changed[index] = -math.inf
                changed[index, _inside(forced, logits)] = 0.0
            changed[index, _inside(banned, logits)] = -math.inf
        return logits if changed is None else changed

    def _forced(self, row: Written) -> tuple[int, ...]:
        if self.forced_last and len(row.ids) == row.limit - 1:
            return self.forced_last
        if self.forced_first is not None and len(row.prompt) + len(row.ids) == 1:
            return (self.forced_first,)
        return ()

    def _forbidden(self, row: Written) -> list[int]:
        """The tokens that must not come next. Forced tokens obey the first two rules only."""
        banned = list(self.suppressed)
        if self.suppressed_first and len(row.ids) == self._first_free(row):
            banned += self.suppressed_first
        if self._forced(row):
            return banned
        banned += self.bad_tokens
        length = len(row.prompt) + len(row.ids)
        if len(row.ids) < self.min_tokens or length < self.min_length:
            banned += self.ends
        if self.bad_words or self.no_repeat_ngram_size:
            before = [*row.prompt, *row.ids]
            banned += (word[-1] for word in self.bad_words if _completes(word, before))
            banned += repeated_ends(before, self.no_repeat_ngram_size)
        return banned

    def _first_free(self, row: Written) -> int:
        """The index of the first token of the text that is not forced."""
        return 1 if self.forced_first is not None and len(row.prompt) <= 1 else 0


def repeated_ends(ids: Sequence[int], size: int) -> list[int]:
    """The tokens that would complete a run of ``size`` tokens that ``ids`` holds already.

    >>> repeated_ends([3, 5, 8, 3, 5], 3)
    [8]
    """
    if not 0 < size <= len(ids):
        return []
    prefix = list(ids[len(ids) - size + 1 :])
    starts = range(len(ids) - size + 1)
    return [ids[i + size - 1] for i in starts if list(ids[i : i + size - 1]) == prefix]


def make_rules(
    config: ModelConfig,
    defaults: GenerationDefaults,
    *,
    ends: tuple[int, ...],
    no_repeat_ngram_size: int = 0,
    allowed: frozenset[int] = frozenset(),
) -> TokenRules:
    """The rules of a model and its files; ``allowed`` tokens were named by the caller."""
    words = [word for word in defaults.bad_words if not (len(word) == 1 and word[0] in ends)]
    single = (word[0] for word in words if len(word) == 1)
    bad = dict.fromkeys((*forbidden_tokens(config), *single))
    return TokenRules(
        ends=ends,
        suppressed=tuple(token for token in defaults.suppressed if token not in allowed),
        suppressed_first=defaults.suppressed_first,
        bad_tokens=tuple(token for token in bad if token not in allowed),
        bad_words=tuple(word for word in words if len(word) > 1),
        no_repeat_ngram_size=no_repeat_ngram_size,
        min_tokens=defaults.min_tokens or 0,
        min_length=0 if defaults.min_tokens is not None else defaults.min_length or 0,
        forced_first=defaults.forced_first,
        forced_last=defaults.forced_last,
    )


def forbidden_tokens(config: ModelConfig) -> tuple[int, ...]:
    """Return the tokens that a model must not generate, although it may rate them highly.

    Marian's models have no begin token: a text starts from padding, whose row of the output matrix
    is never trained. transformers forbids it too (``bad_words_ids``).
    """
    marian = config.kind == "encoder-decoder" and config.positions == "sinusoidal-halves"
    if not marian or config.pad is None or config.pad in config.eos:
        return ()
    return (config.pad,)


def _completes(word: tuple[int, ...], before: list[int]) -> bool:
    """True if all of a word but its last token has just been written."""
    return len(before) >= len(word) - 1 and tuple(before[1 - len(word) :]) == word[:-1]


def _inside(tokens: Sequence[int], logits: Float[Tensor, "batch vocab"]) -> list[int]:
    """Those tokens that the vocabulary has: files name others, too."""
    return [token for token in tokens if 0 <= token < logits.shape[-1]]
