"""Beam search: several beams in one batch, and the texts with the highest scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import flag, real_number, shown, whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.event import FinishReason
from clearhead.generation.file_settings import file_defaults, first_given, token_limit
from clearhead.generation.generate import ngram_size
from clearhead.generation.prompt import end_tokens
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.runner_factory import generative_model, make_runner
from clearhead.generation.sampling import Number
from clearhead.generation.settings import Settings
from clearhead.generation.sound_logits import refuse_no_choice, refuse_unsound
from clearhead.generation.token_rules import TokenRules, make_rules
from clearhead.generation.token_sampler import tokenizer_logits

EarlyStopping: TypeAlias = bool | Literal["never"]
MOST_BEAMS = 1_000  # a step ranks beams × vocabulary numbers


@dataclass(frozen=True)
class Hypothesis:
    """A finished text. ``score`` is its log-probability divided by length**length_penalty.

    With a repetition penalty or forced tokens, ``log_probability`` is what the search ranked by.
    """

    ids: tuple[int, ...]  # with the token that ended it, if one did
    text: str
    score: float
    log_probability: float
    finish: FinishReason


@dataclass(frozen=True)
class _Beam:
    """An unfinished text: its tokens, its log-probability, and the row that it extends."""

    ids: tuple[int, ...]
    log_probability: float
    parent: int
    prompt: tuple[int, ...]
    limit: int


def beam_search(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    beams: int | None = None,
    best: int = 1,
    max_tokens: int | None = None,
    length_penalty: Number | None = None,
    early_stopping: EarlyStopping | None = None,
    repetition_penalty: Number | None = None,
    no_repeat_ngram_size: int | None = None,
    engine: bool | None = None,
    file_settings: bool = True,
) -> list[Hypothesis]:
    """Search for the texts with the highest scores.

    The score of a text is log p / length**length_penalty: a penalty of 0 favours short texts, one
    above 1 long ones. The prompt of an encoder-decoder model is the source that its encoder reads.
    What is not given comes from the model's files (``loaded.generation``), if they say it.

    Args:
        loaded: a decoder or encoder-decoder model from ``ch.load``.
        prompt: a text or a list of token ids.
        beams: the number of beams that are followed in one batch, at most 1,000. Default: the
            file's, or 5.
        best: the number of texts to return, at most ``beams``.
        max_tokens: the largest number of tokens of a text. Default: the file's, or 128.
        length_penalty: the exponent of the length in the score. Default: the file's, or 1.
        early_stopping: when the search ends. False: when no beam, at its present length, could beat
            the finished texts. True: when there are so many finished texts as beams. "never": when
            no beam, at any length, could beat them. Default: the file's, or False.
        repetition_penalty: above 1 discourages tokens of prompt and text.
        no_repeat_ngram_size: no run of so many tokens comes twice, the prompt included; 0: off.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.
        file_settings: False leaves the settings of the model's files aside, but not the tokens
            that begin and end a text.

    Returns:
        The ``best`` texts, highest score first.

    Raises:
        InputError: a setting or the prompt is not valid, the model cannot generate, or its files
            ask for something that is not offered.

    >>> import clearhead as ch
    >>> best, second = ch.beam_search(ch.load("dates"), "5 May 2021", best=2, engine=False)
    >>> best.text, best.finish, best.score > second.score
    ('2021-05-05', 'stop-token', True)
    """
    generative_model(loaded)
    defaults = file_defaults(loaded, file_settings)
    beams = whole_number(
        "beams", first_given(beams, defaults.beams, otherwise=5), least=1, most=MOST_BEAMS
    )
    whole_number("best", best, least=1)
    if best > beams:
        raise InputError(f"best must be at most beams; got best={shown(best)} with beams={beams}.")
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens, least=1)
    penalty = first_given(repetition_penalty, defaults.repetition_penalty, otherwise=1.0)
    settings = Settings(repetition_penalty=penalty)
    size, ends = ngram_size(no_repeat_ngram_size, defaults), end_tokens(loaded)
    length_penalty = first_given(length_penalty, defaults.length_penalty, otherwise=1.0)
    stopping: object = first_given(early_stopping, defaults.early_stopping, otherwise=False)
    prompts = PromptBatch.of(loaded, prompt)
    if len(prompts.ids) > 1:
        raise InputError("beam_search takes one prompt at a time; several came.")
    longest, reason = _limit(prompts, token_limit(max_tokens, defaults, len(prompts.ids[0])))
    search = _Search(
        loaded, beams, real_number("length_penalty", length_penalty), _checked_stopping(stopping),
        longest, reason, settings, renormalise=bool(defaults.renormalise), ends=ends,
        rules=make_rules(loaded.config, defaults, ends=ends, no_repeat_ngram_size=size),
        running=[_Beam((), 0.0, 0, tuple(prompts.ids[0]), longest)],
    )  # fmt: skip
    runner = make_runner(loaded, engine, sources=prompts.sources)
    logits = runner.extend(prompts.ids)
    while search.step(logits):
        runner.reorder([beam.parent for beam in search.running])
        logits = runner.extend([[beam.ids[-1]] for beam in search.running])
    return search.finished[:best]


def _limit(prompts: PromptBatch, max_tokens: int) -> tuple[int, FinishReason]:
    """The largest number of tokens, and the reason for this limit."""
    free = None if prompts.context is None else prompts.context - len(prompts.ids[0]) + 1
    if free is not None and free < max_tokens:
        return free, "context"
    return max_tokens, "max-tokens"


def _checked_stopping(given: object) -> EarlyStopping:
    if isinstance(given, str) and given == "never":
        return "never"
    try:
        return flag("early_stopping", given)
    except InputError as error:
        raise InputError(error.message.replace("True or False", 'True, False or "never"')) from None


@dataclass
class _Search:
    """The state of one search, without the model."""

    loaded: Loaded
    beams: int
    length_penalty: float
    early_stopping: EarlyStopping
    longest: int
    limit_reason: FinishReason
    settings: Settings
    rules: TokenRules
    renormalise: bool
    ends: tuple[int, ...]
    running: list[_Beam]
    length: int = 0
    finished: list[Hypothesis] = field(default_factory=list)

    def step(self, logits: Float[Tensor, "beam vocab"]) -> bool:
        """Extend every beam by a token; return False when the search has ended."""
        self.length += 1
        candidates = self._candidates(tokenizer_logits(logits, self.loaded.tokenizer))
        for beam in candidates[: self.beams]:
            if self._ended(beam):
                self._finish(beam)
        self.running = [beam for beam in candidates if not self._ended(beam)][: self.beams]
        return bool(self.running) and self._can_improve()

    def _candidates(self, logits: Float[Tensor, "beam vocab"]) -> list[_Beam]:
        """The most likely continuations: so many that enough of them do not end here."""
        past = torch.tensor([beam.log_probability for beam in self.running], dtype=torch.float64)
        totals = self._log_probabilities(logits) + past[:, None]
        wanted = self.beams * (1 + max(1, len(self.ends)))
        top = totals.flatten().topk(min(wanted, totals.numel()))
        found = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        vocab = logits.shape[-1]
        return [
            self._extended(self.running[index // vocab], index % vocab, total, index // vocab)
            for total, index in found
            if total > -math.inf
        ]

    def _log_probabilities(
        self, logits: Float[Tensor, "beam vocab"]
    ) -> Float[Tensor, "beam vocab"]:
        """The logarithms of probabilities, after penalties and rules."""
        refuse_unsound(logits)
        plain = logits.double().log_softmax(-1)
        texts = [beam.ids for beam in self.running]
        prompts = [beam.prompt for beam in self.running]
        changed = self.rules.apply(self.settings.penalised(plain, prompts, texts), self.running)
        if changed is not plain:
            refuse_no_choice(changed.amax(0)[None])  # a beam may come to its end, but not all
        return changed.log_softmax(-1) if self.renormalise else changed

    @staticmethod
    def _extended(beam: _Beam, token: int, total: float, parent: int) -> _Beam:
        return _Beam((*beam.ids, token), total, parent, beam.prompt, beam.limit)

    def _ended(self, beam: _Beam) -> bool:
        return self.length >= self.longest or beam.ids[-1] in self.ends

    def _finish(self, beam: _Beam) -> None:
        """Keep a finished text if it is one of the best so far."""
        stopped = beam.ids[-1] in self.ends
        tokenizer = self.loaded.tokenizer
        done = Hypothesis(
            ids=beam.ids,
            text="" if tokenizer is None else tokenizer.decode(beam.ids),
            score=score(beam.log_probability, self.length, self.length_penalty),
            log_probability=beam.log_probability,
            finish="stop-token" if stopped else self.limit_reason,
        )
        ranked = sorted([*self.finished, done], key=self._rank, reverse=True)
        self.finished = ranked[: self.beams]

    def _rank(self, text: Hypothesis) -> tuple[int, float]:
        return rank(text.log_probability, len(text.ids), self.length_penalty)

    def _can_improve(self) -> bool:
        if len(self.finished) < self.beams:
            return True
        if self.early_stopping is True:
            return False
        longer = self.early_stopping == "never" and self.length_penalty > 0
        length = self.longest if longer else self.length
        reached = rank(self.running[0].log_probability, length, self.length_penalty)
        return reached > self._rank(self.finished[-1])


def score(log_probability: float, length: int, penalty: float) -> float:
    """Return log p / length**penalty, also where the power is too large or small for a float.

    >>> score(-6.0, 3, 1.0), score(-6.0, 3, 1e9), score(-6.0, 3, -1e9)
    (-2.0, -0.0, -inf)
    """
    if log_probability == 0.0:
        return 0.0
    try:
        power = math.pow(length, -penalty)
    except OverflowError:
        power = math.inf
    return log_probability * power


def rank(log_probability: float, length: int, penalty: float) -> tuple[int, float]:
    """Return what orders texts as their scores do: sign and logarithm, which never overflow."""
    if log_probability == 0.0:
        return 0, 0.0
    size = math.log(abs(log_probability)) - penalty * math.log(length)
    return (1, size) if log_probability > 0 else (-1, -size)
