from __future__ import annotations

import pytest
import torch

from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.scores import CONFIRM, FIND, ScoreTable
from clearhead.trace.watching.watch import watch
from tests.shared.role_models import counted, some_sentences


def test_scores_are_those_of_the_exact_weights() -> None:
    """Every hit and every mass again, row by row, from what watch shows."""
    model = planted_model(some_sentences())
    prop = BUILT_IN["same token"]
    tally = counted(Count(Reader(model), [prop, BUILT_IN["first token"]]))
    scores = ScoreTable(tally)
    number, head = tally.index.numbers["same token"], 1
    variant = scores.variant(0, head, number)
    hits, mass, cases = [0, 0], [0.0, 0.0], [0, 0]
    for sentence in some_sentences():
        read = Reader(model).read(sentence)
        with watch(model.model) as seen:
            model.model(torch.tensor([[token.id for token in read.tokens]]))
        for query, targets in prop.targets(read).items():  # type: ignore[union-attr]
            weights = seen["L0H1"].row(query).clone()
            kept = [target for target in targets if not (variant and target == 0)]
            if not kept or query + 1 - variant < 2:
                continue
            half = sentence.key & 1
            shown = weights[: query + 1].clone()
            shown[:variant] = -1
            hits[half] += int(shown.argmax()) in kept
            mass[half] += float(weights[kept].sum())
            cases[half] += 1
    for half in (FIND, CONFIRM):
        score = scores.score(half, 0, head, number)
        assert (score.hits, score.cases) == (hits[half], cases[half])
        assert score.mass == pytest.approx(mass[half] / cases[half], abs=1e-4)
