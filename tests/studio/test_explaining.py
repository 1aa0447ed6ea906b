from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.explain.make_look import read_passage
from clearhead.studio.explaining import explain, measure_heads, without
from clearhead.studio.predicting import Prediction, prediction_of
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def last() -> int:
    return len(read_passage(decoder(), TEXT)) - 1


def prediction() -> Prediction:
    return prediction_of(decoder(), TEXT, [], last(), None)


def test_the_parts_are_those_of_why() -> None:
    heard, loaded = Heard(), decoder()
    explain(job_of(heard), prediction(), token=7, rank=0, instead=None)
    (found,) = heard.of("why")
    why = ch.why(loaded, TEXT, 7, effects=False)
    assert found["total"] == pytest.approx(why.total) and found["exact"]
    assert found["heads"][0]["name"] == why.heads[0].name
    assert [row[2] for row in found["words"]] == pytest.approx([one.value for one in why.sources])
    assert len(found["grid"]) == 2 and len(found["grid"][0]) == 4


def distribution(off: list[dict[str, Any]]) -> dict[int, tuple[float, float]]:
    heard = Heard()
    without(job_of(heard), prediction(), off=off, write=2)
    assert [one["off"] for one in heard.of("continued")] == [False, True]
    return {one["id"]: (one["before"], one["after"]) for one in heard.of("without")[0]["tokens"]}


def test_without_is_measured() -> None:
    """Before and after are the model's own softmax, computed here once more."""
    found = distribution([{"head": "L1H2"}, {"head": "L0H1", "source": 2}])
    loaded = decoder()
    ids = torch.tensor([[token.id for token in read_passage(loaded, TEXT).tokens]])
    own = loaded.model(ids)[0, -1].softmax(0)
    with ch.ablate(loaded, "L1H2"), ch.ablate(loaded, "L0H1", source=2, query=last()):
        changed = loaded.model(ids)[0, -1].softmax(0)
    for id, (before, after) in found.items():
        assert before == pytest.approx(float(own[id]), rel=1e-4)
        assert after == pytest.approx(float(changed[id]), rel=1e-4)
    assert any(abs(before - after) > 1e-6 for before, after in found.values())


def test_each_listed_head_is_tried() -> None:
    heard = Heard()
    why = explain(job_of(heard), prediction(), token=None, rank=0, instead=None)
    measure_heads(job_of(heard), why, prediction())
    assert [one["head"] for one in heard.of("effect")] == [one.name for one in why.heads[:10]]
