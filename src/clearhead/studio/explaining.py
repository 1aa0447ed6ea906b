"""Why a model predicts a token, and what it predicts without some heads or edges: measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.explain.interventions.ablate import ablate
from clearhead.explain.why.make_why import explain as take_apart
from clearhead.explain.why.parts import HeadPart, Why
from clearhead.explain.why.target import sampled_logits, token_id, token_text
from clearhead.generation.generate import generate
from clearhead.studio.predicting import Prediction, ranked
from clearhead.studio.worker import Job
from clearhead.views.page.predictions import named
from clearhead.views.why.text import headline, proof_text, rest, summary

HEADS, SOURCES, TOKENS = 24, 8, 10  # that are sent
MEASURED = 10  # heads that are ablated one by one, in real runs


def explain(
    job: Job, prediction: Prediction, *, token: int | None, rank: int, instead: int | None
) -> Why:
    """Take a prediction apart, and send its largest parts; without a token, that of a rank."""
    job.progress(1, 3, "taking the prediction apart")
    run = prediction.run()
    if token is None:
        token = ranked(sampled_logits(prediction.loaded, run.logits), rank)
    why = take_apart(run, token_id(prediction.loaded, token), instead)
    names, grid = why.grid()
    job.tell(
        "why", text=headline(why), summary=summary(why), proof=proof_text(why),
        exact=why.proof.exact, total=why.total, token=_token(why.token),
        instead=None if why.instead is None else _token(why.instead),
        heads=[_head(part) for part in why.heads[:HEADS]],
        words=[[one.mark.text, one.column, one.value] for one in why.sources],
        rest=[[name, value] for name, value in rest(why)],
        columns=[[mark.text, list(mark.tokens)] for mark in why.columns],
        source_columns=[[mark.text, list(mark.tokens)] for mark in why.source_columns],
        layers=list(names), grid=[[_number(value) for value in row] for row in grid.tolist()],
        python=prediction.in_python(), writes=prediction.loaded.config.kind == "decoder",
    )  # fmt: skip
    return why


def measure_heads(job: Job, why: Why, prediction: Prediction) -> None:
    """Run the model without each of the listed heads, one by one, and send what it says then."""
    loaded = prediction.loaded
    likeliest = int(prediction.probabilities().argmax())
    for part in why.heads[:MEASURED]:
        job.pause()
        with switched_off(loaded, [{"head": part.name}], None):
            after = prediction.probabilities()
        best = int(after.argmax())
        job.tell(
            "effect", head=part.name, token=named(token_text(loaded, best)),
            probability=float(after[best]), own=float(after[why.token.id]),
            changed=best != likeliest,
        )  # fmt: skip
    job.tell("measured")


def _number(value: float) -> float | None:
    return None if value != value else round(value, 4)


def _token(token: Any) -> dict[str, Any]:
    return {"id": token.id, "name": named(token.text), "probability": token.probability}


def _head(part: HeadPart) -> dict[str, Any]:
    sources = [[one.mark.text, one.column, one.value, one.weight] for one in part.sources[:SOURCES]]
    return {"name": part.name, "value": part.value, "sources": sources}


def without(job: Job, prediction: Prediction, *, off: Sequence[dict[str, Any]], write: int) -> None:
    """Run the model as it is and with some heads or edges switched off; send what both say."""
    loaded = prediction.loaded
    before = prediction.probabilities()
    with switched_off(loaded, off, prediction.position):
        after = prediction.probabilities()
    job.tell("without", tokens=_both(loaded, before, after))
    if not write or loaded.config.kind != "decoder":
        return
    said = _written(loaded, job, prediction.ids, write)
    job.tell("continued", text=said, off=False)
    with switched_off(loaded, off, None):
        said = _written(loaded, job, prediction.ids, write)
    job.tell("continued", text=said, off=True)


@contextmanager
def switched_off(
    loaded: Loaded, off: Sequence[dict[str, Any]], query: int | None
) -> Iterator[None]:
    """The model without these heads and edges; an edge goes from ``query``, or from everywhere."""
    with ExitStack() as changes:
        for one in off:
            source = one.get("source")
            if source is None:
                changes.enter_context(ablate(loaded, one["head"]))
            else:
                changes.enter_context(ablate(loaded, one["head"], source=source, query=query))
        yield


def _both(
    loaded: Loaded, before: Float[Tensor, " vocab"], after: Float[Tensor, " vocab"]
) -> list[dict[str, Any]]:
    """The likeliest tokens of both, the likeliest as it was first."""
    count = min(TOKENS, len(before))
    ids = dict.fromkeys([*before.topk(count).indices.tolist(), *after.topk(count).indices.tolist()])
    return [
        {"id": id, "name": named(token_text(loaded, id)), "before": float(before[id]),
         "after": float(after[id])}
        for id in sorted(ids, key=lambda one: -float(before[one]))
    ]  # fmt: skip


def _written(loaded: Loaded, job: Job, ids: list[int], count: int) -> str:
    text = ""
    for event in generate(loaded, ids, max_tokens=count, temperature=0, engine=False):
        job.check()
        text += event.text
    return text
