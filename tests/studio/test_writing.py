from typing import Any

import numpy as np
import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.generation.session import Session
from clearhead.studio.reading import Reader, whole_passage
from clearhead.studio.writing import describe_last, largest_places, write
from clearhead.views.page.predictions import TEMPERATURES
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def written(settings: Any, count: int, ids: list[int], seed: int = 3) -> Heard:
    heard = Heard()
    write(Session(decoder()), job_of(heard), settings, text=TEXT, ids=ids, count=count, seed=seed)
    return heard


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0}, {"temperature": 0.8, "top_k": 9, "top_p": 0.9}]
)
def test_it_writes_what_generate_writes(settings: dict[str, Any]) -> None:
    heard = written(lambda: settings, 7, [])
    events = list(ch.generate(decoder(), TEXT, max_tokens=7, seed=3, **settings))
    tokens = heard.of("token")
    assert [one["token"] for one in tokens] == [one.token for one in events if one.finish is None]
    for token, event in zip(tokens, events, strict=False):
        assert token["probability"] == pytest.approx(event.probability, abs=1e-6)
        assert token["ids"][token["rank"] - 1] == token["token"]
    assert heard.of("written")[0]["reason"] in ("max-tokens", "stop-token")


def test_settings_act_on_the_next_token() -> None:
    now = {"temperature": 1.5}
    heard = Heard()
    greedy: list[int] = []

    def settings() -> dict[str, Any]:
        return {"temperature": 0.0} if len(heard.of("token")) >= 2 else now

    write(Session(decoder()), job_of(heard), settings, text=TEXT, ids=[], count=5, seed=1)
    greedy = [one["rank"] for one in heard.of("token")][2:]
    assert greedy and set(greedy) == {1}


def test_going_on_from_written_tokens() -> None:
    whole = [one["token"] for one in written(lambda: {"temperature": 0.0}, 6, []).of("token")]
    rest = written(lambda: {"temperature": 0.0}, 3, whole[:3]).of("token")
    assert [one["token"] for one in rest] == whole[3:6]


def test_what_is_told_of_a_written_token() -> None:
    """Its distribution is that of when it was written; all temperatures are there."""
    tokens = written(lambda: {"temperature": 0.0}, 3, []).of("token")
    ids = [one["token"] for one in tokens]
    heard, loaded = Heard(), decoder()
    passage, _ = whole_passage(loaded, TEXT, ids)
    describe_last(loaded, Reader(loaded), job_of(heard), passage)
    (found,) = heard.of("described")
    assert found["ids"][:5] == tokens[-1]["ids"][:5] and found["token"] == ids[-1]
    assert found["logits"][:5] == pytest.approx(tokens[-1]["logits"][:5], abs=1e-3)
    assert [one for one, _ in found["rests"]] == list(TEMPERATURES)


def test_who_cannot_write() -> None:
    with pytest.raises(InputError, match="only a decoder"):
        session = Session(ch.load("dates"))
        write(session, job_of(Heard()), dict, text="May 5", ids=[], count=1, seed=0)
    loaded = decoder()
    passage, _ = whole_passage(loaded, "t", [])
    with pytest.raises(InputError, match="first token"):
        describe_last(
            loaded, Reader(loaded), job_of(Heard()), type(passage)("t", passage.tokens[:1])
        )


@pytest.mark.parametrize("many", [1, 5, 64, 700, 4999])
def test_the_largest_of_many_numbers(many: int) -> None:
    numbers = np.random.default_rng(many).normal(size=many).astype(np.float32).round(1)
    for count in {1, min(many, 13), many}:
        wanted = sorted(range(many), key=lambda place: (-numbers[place], place))[:count]
        assert largest_places(numbers, count).tolist() == wanted
