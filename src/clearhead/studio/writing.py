"""Writing, token by token: each is sent with what the model said before it was chosen.

The loop is that of ``ch.generate``, with settings that may change between two tokens. With the same
settings and seed it writes the same text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

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
from clearhead.generation.token_sampler import TokenSampler, tokenizer_logits
from clearhead.studio.reading import Reader
from clearhead.studio.worker import Job
from clearhead.trace.passage import Passage
from clearhead.views.page.predictions import TEMPERATURES, token_name, vocabulary

RUN = 64  # numbers whose largest is compared first
LISTED = 12  # tokens of a distribution that are sent while writing

Chosen = Callable[[], dict[str, Any]]


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
    for number in range(count):
        job.check()
        asked = settings()
        sampler = TokenSampler(Settings(**asked), loaded.tokenizer, 0, rules)
        (found,) = sampler.sample(logits, [row])
        event = row.append(found.token, found.probability, ())
        said = distribution(loaded, logits, found.token, asked)
        job.tell("token", index=number, text=event.text, probability=found.probability, **said)
        reason = _finished(row, batch, ends)
        if reason is not None:
            job.tell("written", reason=reason, rest=row.finish(reason).text)
            return
        logits = runner.extend([[found.token]])


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
    return {
        "token": token,
        "ids": ids,
        "names": [token_name(loaded, id) for id in ids],
        "logits": kept.tolist(),
        "after": float(row[best[count]]) if len(best) > count else None,
        "rests": [[one, _rest(row, kept, one)] for one in temperatures],
        "rank": int(np.count_nonzero(row > row[token])) + 1,
        "vocab": vocabulary(loaded),
    }


def _rest(
    row: Float[np.ndarray, " vocab"], kept: Float[np.ndarray, " kept"], temperature: float
) -> float:
    """Σ exp((x − largest x) / temperature) over what is not kept."""
    every, listed = ((part - kept[0]) * np.float32(1 / temperature) for part in (row, kept))
    return max(0.0, float(np.exp(every, out=every).sum() - np.exp(listed).sum()))


def largest_places(numbers: Float[np.ndarray, " many"], count: int) -> Int[np.ndarray, " count"]:
    """The places of the largest numbers, the largest first; of equal ones the first.

    The count-th largest of the maxima of short runs is no more than the count-th largest number:
    only what reaches it is sorted.
    """
    runs = len(numbers) // RUN
    if runs < count:
        return np.argsort(-numbers, kind="stable")[:count]
    tops = numbers[: runs * RUN].reshape(runs, RUN).max(axis=1)
    least = np.partition(tops, runs - count)[runs - count]
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
