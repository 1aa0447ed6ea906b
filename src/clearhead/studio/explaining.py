"""Why a model predicts a token, and what it predicts without some heads or edges: measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.ablate import ablate
from clearhead.explain.make_look import evaluating, read_passage
from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.parts import HeadPart, Why
from clearhead.explain.why.target import token_text
from clearhead.generation.generate import generate
from clearhead.generation.token_sampler import tokenizer_logits
from clearhead.models.decoder import Decoder
from clearhead.studio.reading import whole_passage
from clearhead.studio.worker import Job
from clearhead.trace.passage import Passage
from clearhead.views.page.predictions import named
from clearhead.views.why.text import headline, proof_text, rest, summary

HEADS, SOURCES, TOKENS = 24, 8, 10  # that are sent
MEASURED = 10  # heads that are ablated one by one, in real runs


def explain(
    loaded: Loaded, job: Job, *, text: str, ids: Sequence[int], position: int, token: int | None,
    instead: int | None,
) -> Why:  # fmt: skip
    """Take the prediction after a position apart, and send its largest parts."""
    prefix = prefix_of(loaded, text, ids, position)
    job.progress(1, 3, "taking the prediction apart")
    why = make_why(loaded, prefix, token=token, instead=instead, effects=False)
    names, grid = why.grid()
    job.tell(
        "why", text=headline(why), summary=summary(why), proof=proof_text(why),
        exact=why.proof.exact, total=why.total, token=_token(why.token),
        instead=None if why.instead is None else _token(why.instead),
        heads=[_head(part) for part in why.heads[:HEADS]],
        words=[[one.mark.text, one.column, one.value] for one in why.sources],
        rest=[[name, value] for name, value in rest(why)],
        columns=[[mark.text, list(mark.tokens)] for mark in why.columns],
        layers=list(names), grid=[[_number(value) for value in row] for row in grid.tolist()],
    )  # fmt: skip
    return why


def measure_heads(loaded: Loaded, job: Job, why: Why, prefix: str | list[int]) -> None:
    """Run the model without each of the listed heads, one by one, and send what it says then."""
    read = _ids(read_passage(loaded, prefix)) if isinstance(prefix, str) else prefix
    likeliest = int(_probabilities(loaded, read).argmax())
    for part in why.heads[:MEASURED]:
        job.check()
        with switched_off(loaded, [{"head": part.name}], None):
            after = _probabilities(loaded, read)
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


def prefix_of(loaded: Loaded, text: str, ids: Sequence[int], position: int) -> str | list[int]:
    """The text up to a position; its token ids where a text cut there would be read differently."""
    if loaded.config.kind != "decoder":
        raise InputError(
            f"the page explains what a decoder says next; {loaded.name} is an "
            f"{loaded.config.kind}.",
            hint="ch.why explains masked-language models and encoder-decoders as well.",
        )
    passage, _ = whole_passage(loaded, text, ids)
    if position >= len(passage):
        raise InputError(f"the text has {len(passage)} tokens; there is no position {position}.")
    wanted = [token.id for token in passage.tokens[: position + 1]]
    cut = passage.text[: passage.tokens[position].end]
    if cut.strip() and _ids(read_passage(loaded, cut)) == wanted:
        return cut
    return wanted


def _ids(passage: Passage) -> list[int]:
    return [token.id for token in passage.tokens]


def without(
    loaded: Loaded, job: Job, *, text: str, ids: Sequence[int], position: int,
    off: Sequence[dict[str, Any]], write: int,
) -> None:  # fmt: skip
    """Run the model as it is and with some heads or edges switched off; send what both say."""
    prefix = prefix_of(loaded, text, ids, position)
    read = _ids(read_passage(loaded, prefix)) if isinstance(prefix, str) else prefix
    before = _probabilities(loaded, read)
    with switched_off(loaded, off, position):
        after = _probabilities(loaded, read)
    job.tell("without", tokens=_both(loaded, before, after))
    if not write:
        return
    said = _written(loaded, job, read, write)
    job.tell("continued", text=said, off=False)
    with switched_off(loaded, off, None):
        said = _written(loaded, job, read, write)
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


def _probabilities(loaded: Loaded, ids: list[int]) -> Float[Tensor, " vocab"]:
    """The distribution after some tokens, by torch, which ablation changes."""
    model = loaded.model
    assert isinstance(model, Decoder)
    with evaluating(loaded):
        logits = model(torch.tensor([ids], device=next(model.parameters()).device), last_only=True)
    return tokenizer_logits(logits[0, -1:], loaded.tokenizer)[0].double().softmax(0).cpu()


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
