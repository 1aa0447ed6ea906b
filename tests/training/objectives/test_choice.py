"""The objective follows from the model. (Every family: tests/training/test_start.py.)"""

from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.models.build import build
from clearhead.models.config import Head, Kind, ModelConfig
from clearhead.training.objectives import (
    MaskedToken,
    MatchingSentences,
    NextToken,
    Objective,
    TargetGivenSource,
    objective_of,
)


@pytest.mark.parametrize(
    ("kind", "head", "objective"),
    [
        ("decoder", "language", NextToken),
        ("encoder-decoder", "language", TargetGivenSource),
        ("encoder", "masked", MaskedToken),
        ("encoder", "embedding", MatchingSentences),
        ("encoder", "none", MatchingSentences),
        ("encoder", "classification", None),
    ],
)
def test_objectives(kind: Kind, head: Head, objective: type[Objective] | None) -> None:
    config = ModelConfig(
        kind=kind, head=head, vocab=31, context=17, model=6, layers=1, heads=3, feed_forward=5,
        encoder_layers=1 if kind == "encoder-decoder" else None,
        labels=2 if head == "classification" else 0,
    )  # fmt: skip
    if objective is None:
        with pytest.raises(InputError, match="labelled texts are not known"):
            objective_of(build(config))
    else:
        assert type(objective_of(build(config))) is objective
