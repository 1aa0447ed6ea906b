"""Writing, token by token: each is sent with what the model said before it was chosen.

The loop is that of ``ch.generate``, with settings that may change between two tokens. With the same
settings and seed it writes the same text.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.generated import GeneratedText
from clearhead.explain.look import Look
from clearhead.generation.file_settings import file_defaults
from clearhead.generation.generate import ngram_size
from clearhead.generation.prompt import end_tokens, prompt_ids
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.row import Row
from clearhead.generation.session import Session
from clearhead.generation.settings import Settings
from clearhead.generation.token_rules import TokenRules, make_rules
from clearhead.generation.token_sampler import SampledToken, TokenSampler, tokenizer_logits
from clearhead.studio.reading import Reader
from clearhead.studio.worker import Job
from clearhead.trace.passage import Passage
from clearhead.views.page.predictions import TEMPERATURES, token_name, vocabulary

GROUP = 64  # numbers whose largest is compared first
LISTED = 12  # tokens of a distribution that are sent while writing
BETWEEN = 1 / 20  # seconds; tokens that come faster are told several at once

Chosen = Callable[[], dict[str, Any]]
Logits: TypeAlias = Float[Tensor, "1 vocab"]


def write(
    session: Session, job: Job, settings: Chosen, *, text: str, ids: Sequence[int], count: int,
    seed: int,
) -> None:  # fmt: skip
    """Write up to ``count`` tokens after a text, and after tokens that were written before."""
    loaded = session.loaded
    if loaded.config.kind != "decoder":
        raise InputError(f"only a decoder writes on; {loaded.name} is an {loaded.config.kind}.")
    prompt = [*prompt_ids(loaded, text), *ids]
    batch = PromptBatch.of(loaded, prompt)
    (row,) = batch.rows(loaded, 1, (), seed, [count])
    rules, ends = rules_of(loaded), end_tokens(loaded)
    runner = session.runner(prompt)
    logits = runner.extend([prompt[runner.length :]])
    untold = Untold(loaded, job)
    try:
        for _ in range(count):
            job.check()
            asked = settings()
            sampler = TokenSampler(Settings(**asked), loaded.tokenizer, 0, rules)
            (found,) = sampler.sample(logits, [row])
            event = row.append(found.token, found.probability, ())
            untold.add(found, event.text, logits, asked)
            reason = _finished(row, batch, ends)
            if reason is not None:
                untold.tell()
                job.tell("written", reason=reason, rest=row.finish(reason).text)
                return
            logits = runner.extend([[found.token]])
    finally:  # also before an error is told
        untold.tell()


@dataclass
class Untold:
    """Tokens that are written and not told yet.

    A model that writes faster than a page is drawn tells several at once. What it said is described
    then, too: between two steps of the model, the numbers would have to come into the caches anew.
    """

    loaded: Loaded
    job: Job
    waiting: list[tuple[SampledToken, str, Logits, dict[str, Any]]] = field(default_factory=list)
    number: int = 0  # of all that were told
    told: float = -math.inf
    came: float = -math.inf

    def add(self, found: SampledToken, text: str, logits: Logits, settings: dict[str, Any]) -> None:
        """Add a token; it waits if the next one, at the pace of the last, comes soon enough."""
        self.waiting.append((found, text, logits, settings))
        now = time.monotonic()
        step, self.came = now - self.came, now
        if now + step - self.told >= BETWEEN:
            self.tell()
            self.told = now

    def tell(self) -> None:
        """Tell all that wait, unless nobody listens any more."""
        if self.waiting:
            self.job.check()
        waiting, self.waiting = self.waiting, []
        described = [
            distribution(self.loaded, logits, found.token, settings)
            for found, _, logits, settings in waiting
        ]
        for (found, text, _, _), said in zip(waiting, described, strict=True):
            about = {"text": text, "probability": found.probability}
            self.job.tell("token", index=self.number, **about, **said)
            self.number += 1


def _finished(row: Row, batch: PromptBatch, ends: tuple[int, ...]) -> Any:
    if row.ids[-1] in ends:
        return "stop-token"
    if len(row.ids) >= row.limit:
        return "max-tokens"
    return "context" if batch.exceeds_context(row) else None


def rules_of(loaded: Loaded) -> TokenRules:
    """The rules of the model's files, as ``ch.generate`` has them."""
    defaults = file_defaults(loaded, True)
    return make_rules(
        loaded.config, defaults, ends=end_tokens(loaded),
        no_repeat_ngram_size=ngram_size(None, defaults), allowed=frozenset(),
    )  # fmt: skip


def distribution(
    loaded: Loaded, logits: Float[Tensor, "1 vocab"], token: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """What the model said: its likeliest tokens, and the rest as sums at two temperatures."""
    temperature = settings.get("temperature", 1.0)
    temperatures = tuple(sorted({1.0, temperature} - {0.0}))
    return described(loaded, logits, token, LISTED, temperatures)


def described(
    loaded: Loaded,
    logits: Float[Tensor, "1 vocab"],
    token: int,
    count: int,
    temperatures: tuple[float, ...],
) -> dict[str, Any]:
    """The likeliest tokens of one row, as the scripts of a page sample from them.

    This runs between two tokens: NumPy starts no threads, and sums in float32; nothing is sorted
    but the few that are listed.
    """
    row = tokenizer_logits(logits, loaded.tokenizer)[0].float().cpu().numpy()
    best = largest_places(row, min(count + 1, len(row)))
    ids, kept = best[:count].tolist(), row[best[:count]]
    below = row - kept[0]
    return {
        "token": token,
        "ids": ids,
        "names": [token_name(loaded, id) for id in ids],
        "logits": kept.tolist(),
        "after": float(row[best[count]]) if len(best) > count else None,
        "rests": [[one, _rest(below, kept - kept[0], one)] for one in temperatures],
        "rank": int(np.count_nonzero(row > row[token])) + 1,
        "vocab": vocabulary(loaded),
    }


def _rest(
    below: Float[np.ndarray, " vocab"], listed: Float[np.ndarray, " listed"], temperature: float
) -> float:
    """Σ exp((x − largest x) / temperature) over what is not listed."""
    every, few = (_exponentials(part, np.float32(1 / temperature)) for part in (below, listed))
    return max(0.0, float(every.sum() - few.sum()))


def _exponentials(
    numbers: Float[np.ndarray, " many"], by: np.float32
) -> Float[np.ndarray, " many"]:
    scaled = numbers if by == 1 else numbers * by
    found: Float[np.ndarray, " many"] = np.exp(scaled, out=None if by == 1 else scaled)
    return found


def largest_places(numbers: Float[np.ndarray, " many"], count: int) -> Int[np.ndarray, " count"]:
    """The places of the largest numbers, the largest first; of equal ones the first.

    The count-th largest of the maxima of small groups is no more than the count-th largest number:
    only what reaches it is sorted. A group is a column of ``GROUP`` rows, as NumPy compares whole
    rows at once.
    """
    groups = len(numbers) // GROUP
    if groups < count:
        return np.argsort(-numbers, kind="stable")[:count]
    tops = numbers[: groups * GROUP].reshape(GROUP, groups).max(axis=0)
    least = np.partition(tops, groups - count)[groups - count]
    places = np.flatnonzero(numbers >= least)
    found: Int[np.ndarray, " count"] = places[np.argsort(-numbers[places], kind="stable")[:count]]
    return found


def describe_last(loaded: Loaded, reader: Reader, job: Job, passage: Passage) -> None:
    """Send what the model said where the last token of a passage came, and where it looked.

    The row of a token does not depend on what runs beside it: these are the numbers that were
    there when it was written.
    """
    if len(passage) < 2:
        raise InputError("the first token of a text is not predicted by anything.")
    read = Passage(passage.text, passage.tokens[:-1])
    seen, kept = reader.read(read, lambda done, all: job.progress(done, all, "reading"))
    token = passage.tokens[-1].id
    written = GeneratedText(passage, len(read), (None,))
    look = Look(seen, loaded=loaded, written=written)
    (found,) = look.generated
    logits, rests = kept.logits[-1], kept.rests[-1].tolist()
    ids = kept.ids[-1].tolist()
    job.tell(
        "described", token=token, ids=ids, names=[token_name(loaded, id) for id in ids],
        logits=logits.tolist(), after=_finite(float(kept.after[-1])), vocab=vocabulary(loaded),
        rests=[[one, sum] for one, sum in zip(TEMPERATURES, rests, strict=True)],
        sources=[
            {"word": one.mark.text, "weight": one.weight, "head": one.head}
            for one in found.sources
        ],
    )  # fmt: skip


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
