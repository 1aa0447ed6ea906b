"""Beam search: several beams in one batch, and the texts with the highest scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.event import FinishReason
from clearhead.generation.generate import check_count
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.runner_factory import generative_model, make_runner
from clearhead.generation.sampling import Number
from clearhead.generation.token_sampler import forbidden_tokens, tokenizer_logits


@dataclass(frozen=True)
class Hypothesis:
    """A finished text. ``score`` is its log-probability divided by length**length_penalty."""

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


def beam_search(
    loaded: Loaded,
    prompt: str | Sequence[int],
    *,
    beams: int = 5,
    best: int = 1,
    max_tokens: int = 128,
    length_penalty: Number = 1.0,
    engine: bool | None = None,
) -> list[Hypothesis]:
    """Search for the texts with the highest scores.

    The score of a text is log p / length**length_penalty: a penalty of 0 favours short texts, one
    above 1 long ones. The search ends when no beam, at its present length, could beat the finished
    texts. The prompt of an encoder-decoder model is the source that its encoder reads.

    Args:
        loaded: a decoder or encoder-decoder model from ``ch.load``.
        prompt: a text or a list of token ids.
        beams: the number of beams that are followed in one batch.
        best: the number of texts to return, at most ``beams``.
        max_tokens: the largest number of tokens of a text.
        length_penalty: the exponent of the length in the score.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.

    Returns:
        The ``best`` texts, highest score first.

    Raises:
        InputError: a setting or the prompt is not valid, or the model cannot generate.

    >>> import clearhead as ch
    >>> best, second = ch.beam_search(ch.load("dates"), "5 May 2021", best=2, engine=False)
    >>> best.text, best.finish, best.score > second.score
    ('2021-05-05', 'stop-token', True)
    """
    generative_model(loaded)
    check_count("beams", beams, 1)
    check_count("max_tokens", max_tokens, 1)
    check_count("best", best, 1)
    if best > beams:
        raise InputError(f"best must be at most beams; got best={best} with beams={beams}.")
    prompts = PromptBatch.of(loaded, prompt)
    if len(prompts.ids) > 1:
        raise InputError("beam_search takes one prompt at a time; several came.")
    search = _Search(loaded, beams, length_penalty, *_limit(prompts, max_tokens))
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


@dataclass
class _Search:
    """The state of one search, without the model."""

    loaded: Loaded
    beams: int
    length_penalty: Number
    longest: int
    limit_reason: FinishReason
    length: int = 0
    running: list[_Beam] = field(default_factory=lambda: [_Beam((), 0.0, 0)])
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
        totals = logits.double().log_softmax(-1) + past[:, None]
        totals[:, list(forbidden_tokens(self.loaded.config))] = -math.inf
        wanted = self.beams * (1 + max(1, len(self.loaded.config.eos)))
        top = totals.flatten().topk(min(wanted, totals.numel()))
        found = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        vocab = logits.shape[-1]
        return [
            _Beam((*self.running[index // vocab].ids, index % vocab), total, index // vocab)
            for total, index in found
            if total > -math.inf
        ]

    def _ended(self, beam: _Beam) -> bool:
        return self.length >= self.longest or beam.ids[-1] in self.loaded.config.eos

    def _finish(self, beam: _Beam) -> None:
        """Keep a finished text if it is one of the best so far."""
        stopped = beam.ids[-1] in self.loaded.config.eos
        tokenizer = self.loaded.tokenizer
        done = Hypothesis(
            ids=beam.ids,
            text="" if tokenizer is None else tokenizer.decode(beam.ids),
            score=self._score(beam.log_probability),
            log_probability=beam.log_probability,
            finish="stop-token" if stopped else self.limit_reason,
        )
        ranked = sorted([*self.finished, done], key=lambda text: -text.score)
        self.finished = ranked[: self.beams]

    def _score(self, log_probability: float) -> float:
        return log_probability / math.pow(self.length, self.length_penalty)

    def _can_improve(self) -> bool:
        if len(self.finished) < self.beams:
            return True
        return self._score(self.running[0].log_probability) > self.finished[-1].score
