"""Effects: the change of a prediction when a head is ablated and everything behind it recomputed.

A direct part leaves out what a head does through later layers. The total effect has both:
target with the head − target without it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.explain.interventions.every_head import rows_of, states_without_each
from clearhead.explain.make_look import evaluating
from clearhead.explain.why.parts import Effect, Effects, Why
from clearhead.explain.why.prediction_run import PredictionRun
from clearhead.explain.why.readout import read_tokens
from clearhead.models.encoder_decoder import EncoderDecoder

MOST_TOKENS = 60_000  # of all rows together
Progress = Callable[[int, int], None]


def fits(run: PredictionRun) -> bool:
    """True if all heads can be ablated in one batch of reasonable size."""
    return rows_of(run.captured.stack) * len(run.passage) <= MOST_TOKENS


def effects_of(run: PredictionRun, why: Why, progress: Progress | None = None) -> Effects:
    """Ablate every head and feed-forward layer, one at a time."""
    with evaluating(run.loaded):
        names, states = _states(run, progress)
        ids = [why.token.id, *([] if why.instead is None else [why.instead.id])]
        read = read_tokens(run.loaded, states, ids)
    # Before the softcap, as the parts that they are compared with.
    targets = read.uncapped[:, 0] - (0.0 if why.instead is None else read.uncapped[:, 1])
    probabilities = read.probabilities[:, 0].tolist()
    direct = {part.name: part.value for part in why.heads} | dict(why.feed_forwards)
    base = float(targets[0])
    found = [
        Effect(name, direct[name], base - float(targets[row]), probabilities[row])
        for row, name in enumerate(names, start=1)
    ]
    ordered = tuple(sorted(found, key=lambda one: -abs(one.total)))
    return Effects(ordered, base, probabilities[0])


def _states(
    run: PredictionRun, progress: Progress | None
) -> tuple[list[str], Float[Tensor, "row model"]]:
    model = run.loaded.model
    device = next(model.parameters()).device
    ids = torch.tensor([[token.id for token in run.passage.tokens]], device=device)
    stack = run.captured.stack
    if isinstance(model, EncoderDecoder):
        assert run.source is not None
        read = torch.tensor([[token.id for token in run.source.tokens]], device=device)
        begin = stack.begin(ids, context=model.encode(read)[0])
    else:
        begin = stack.begin(ids)
    return states_without_each(stack, begin, run.position, progress)
