from collections.abc import Callable
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look, read_passage
from clearhead.explain.why.prediction_run import read_text
from clearhead.studio.explaining import explain, without
from clearhead.studio.predicting import Prediction, prediction_of, ranked
from tests.shared.explain_models import decoder
from tests.shared.tiny_models import Tiny, token_ids
from tests.studio.heard import TEXT, Heard, job_of

SOURCE = "3rd of March 2021"


Make = Callable[[str], Tiny]


def all_kinds(tiny: Make) -> list[Prediction]:
    """A decoder, a masked-language model and an encoder-decoder, each somewhere in a text."""
    dates, masked = ch.load("dates"), tiny("bert-masked").loaded
    written = make_look(dates, SOURCE).passages[0]
    return [
        prediction_of(decoder(), TEXT, [], 5, None),
        Prediction(masked, read_text(masked, token_ids(6).tolist()), 3),
        *(prediction_of(dates, SOURCE, [], position, written) for position in (0, 4)),
    ]


@pytest.mark.parametrize("number", range(4))
def test_every_kind_of_model_is_explained_as_why_does(tiny: Make, number: int) -> None:
    """The lines for Python give what the page shows; without a head, both measure the same."""
    prediction, heard = all_kinds(tiny)[number], Heard()
    loaded = prediction.loaded
    shown = explain(job_of(heard), prediction, token=None, rank=1, instead=None)
    (found,) = heard.of("why")
    arguments: dict[str, Any] = dict(found["python"])
    why = ch.why(loaded, arguments.pop("text"), found["token"]["id"], effects=False, **arguments)
    assert why.total == pytest.approx(shown.total) and found["token"]["probability"] == (
        pytest.approx(why.token.probability)
    )
    assert why.token.rank == 2 and found["exact"]
    name = why.heads[0].name
    without(job_of(heard), prediction, off=[{"head": name}], write=0)
    with ch.ablate(loaded, name):
        text = found["python"]["text"]
        after = ch.why(loaded, text, found["token"]["id"], effects=False, **arguments)
    (both,) = heard.of("without")
    by_id = {one["id"]: one["after"] for one in both["tokens"]}
    assert by_id[after.token.id] == pytest.approx(after.token.probability, rel=1e-4)


def test_an_edge_of_cross_attention_is_switched_off_at_its_query(tiny: Make) -> None:
    prediction, heard = all_kinds(tiny)[3], Heard()
    without(job_of(heard), prediction, off=[{"head": "C0H0", "source": 2}], write=3)
    (both,) = heard.of("without")
    assert not heard.of("continued")
    run = prediction.run()
    with ch.ablate(prediction.loaded, "C0H0", source=2, query=prediction.position):
        changed = prediction.run().logits.double().softmax(0)
    own = run.logits.double().softmax(0)
    for one in both["tokens"]:
        assert one["before"] == pytest.approx(float(own[one["id"]]), abs=1e-6)
        assert one["after"] == pytest.approx(float(changed[one["id"]]), abs=1e-6)
    assert not torch.equal(own, changed)


def test_a_position_inside_the_text() -> None:
    loaded = decoder()
    passage = read_passage(loaded, TEXT)
    for position in range(len(passage)):
        found = prediction_of(loaded, TEXT, [], position, None)
        assert found.ids == [token.id for token in passage.tokens[: position + 1]]
    with pytest.raises(InputError, match="no position"):
        prediction_of(loaded, TEXT, [], len(passage), None)


def test_what_cannot_be_explained() -> None:
    dates = ch.load("dates")
    with pytest.raises(InputError, match="nothing that was written"):
        prediction_of(dates, SOURCE, [], 0, None)
    with pytest.raises(InputError, match="no position"):
        prediction_of(dates, SOURCE, [], 99, make_look(dates, SOURCE).passages[0])


def test_ranks_count_from_the_likeliest() -> None:
    assert [ranked(torch.tensor([0.1, 0.7, 0.2]), rank) for rank in (0, 1, 2, 9)] == [1, 2, 0, 0]
