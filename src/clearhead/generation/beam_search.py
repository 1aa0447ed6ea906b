"""Beam search: several beginnings side by side, and the best whole texts that come of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.choice import never_written, speakable
from clearhead.generation.choose import runner_for, writer
from clearhead.generation.event import FinishReason
from clearhead.generation.generate import check_count
from clearhead.generation.sampling import Number
from clearhead.generation.starts import Starts


@dataclass(frozen=True)
class Hypothesis:
    """A whole text. ``score`` is its log-probability divided by length**length_penalty."""

    ids: tuple[int, ...]  # with the token that ended it, if one did
    text: str
    score: float
    log_probability: float
    finish: FinishReason


@dataclass(frozen=True)
class _Beam:
    """A beginning: its tokens, the log of its probability, and the row it came from."""

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
    """The ``best`` likeliest texts that a search with so many beams finds, best first.

    A score is log p / length**length_penalty: 0 favours short texts, above 1 long ones. The search
    ends when no beginning, at its present length, could still beat the finished texts.
    """
    writer(loaded)
    check_count("beams", beams, 1)
    check_count("max_tokens", max_tokens, 1)
    check_count("best", best, 1)
    if best > beams:
        raise InputError(f"the {best} best of {beams} beams cannot be told; best is at most beams.")
    starts = Starts.of(loaded, prompt)
    if len(starts.ids) > 1:
        raise InputError("beam_search takes one prompt at a time; several came.")
    search = _Search(loaded, beams, length_penalty, *_limit(starts, max_tokens))
    runner = runner_for(loaded, engine, sources=starts.sources)
    logits = runner.extend(starts.ids)
    while search.step(logits):
        runner.reorder([beam.parent for beam in search.running])
        logits = runner.extend([[beam.ids[-1]] for beam in search.running])
    return search.finished[:best]


def _limit(starts: Starts, max_tokens: int) -> tuple[int, FinishReason]:
    """How many tokens there can be, and what it is that ends there."""
    room = None if starts.context is None else starts.context - len(starts.ids[0]) + 1
    if room is not None and room < max_tokens:
        return room, "context"
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
        """One more token for every beam; False when the search has ended."""
        self.length += 1
        candidates = self._candidates(speakable(logits, self.loaded.tokenizer))
        for beam in candidates[: self.beams]:
            if self._ended(beam):
                self._finish(beam)
        self.running = [beam for beam in candidates if not self._ended(beam)][: self.beams]
        return bool(self.running) and self._can_improve()

    def _candidates(self, logits: Float[Tensor, "beam vocab"]) -> list[_Beam]:
        """The likeliest continuations: so many that enough go on, even if others end."""
        past = torch.tensor([beam.log_probability for beam in self.running], dtype=torch.float64)
        totals = logits.double().log_softmax(-1) + past[:, None]
        totals[:, list(never_written(self.loaded.config))] = -math.inf
        wanted = self.beams * (1 + max(1, len(self.loaded.config.eos)))
        top = totals.flatten().topk(min(wanted, totals.numel()))
        found = zip(top.values.tolist(), top.indices.tolist(), strict=True)
        vocab = logits.shape[-1]
        return [
            _Beam((*self.running[place // vocab].ids, place % vocab), total, place // vocab)
            for total, place in found
            if total > -math.inf
        ]

    def _ended(self, beam: _Beam) -> bool:
        return self.length >= self.longest or beam.ids[-1] in self.loaded.config.eos

    def _finish(self, beam: _Beam) -> None:
        """Keep a whole text if it is one of the best so far."""
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
