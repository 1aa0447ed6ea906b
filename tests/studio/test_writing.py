from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.generation.session import Session
from clearhead.generation.token_sampler import SampledToken
from clearhead.studio import writing
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
    heard, asked = Heard(), iter([1.5, 1.5, 0.0, 0.0, 0.0])

    def settings() -> dict[str, Any]:
        return {"temperature": next(asked)}

    write(Session(decoder()), job_of(heard), settings, text=TEXT, ids=[], count=5, seed=1)
    greedy = [one["rank"] for one in heard.of("token")][2:]
    assert greedy and set(greedy) == {1}


@pytest.mark.parametrize(("step", "gathered"), [(0.001, True), (0.03, False), (1.0, False)])
def test_fast_tokens_are_told_several_at_once(
    step: float, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first at once, no later than the next drawing; all of them, in order."""
    heard, loaded, now = Heard(), decoder(), [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(writing, "time", clock)
    untold, seen = writing.Untold(loaded, job_of(heard)), []
    rows = [torch.randn(1, loaded.config.vocab) for _ in range(5)]
    for place, row in enumerate(rows):
        untold.add(SampledToken(place, 0.5, ()), "", row, {"temperature": 0.7})
        now[0] += step
        seen.append(len(heard.of("token")))
    untold.tell()
    found = heard.of("token")
    assert seen == ([1, 1, 1, 1, 1] if gathered else [1, 2, 3, 4, 5])
    assert [one["index"] for one in found] == [one["token"] for one in found] == [*range(5)]
    for one, row in zip(found, rows, strict=True):
        assert {name: one[name] for name in PLAIN} == plainly(row[0].numpy(), one["token"])


PLAIN = ("ids", "logits", "after", "rests", "rank")


def plainly(row: Any, token: int) -> dict[str, Any]:
    """A distribution from all numbers, sorted: bit for bit what is told."""
    order = sorted(range(len(row)), key=lambda place: (-row[place], place))[: writing.LISTED + 1]
    ids = order[: writing.LISTED]

    def rest(temperature: float) -> float:
        scale, top = np.float32(1 / temperature), row[ids[0]]
        sums = [np.exp((part - top) * scale).sum() for part in (row, row[ids])]
        return max(0.0, float(sums[0] - sums[1]))

    return {
        "ids": ids, "logits": row[ids].tolist(), "after": float(row[order[-1]]),
        "rests": [[one, rest(one)] for one in (0.7, 1.0)],
        "rank": sum(one > row[token] for one in row) + 1,
    }  # fmt: skip


def test_what_was_written_is_told_before_an_error() -> None:
    heard, asked = Heard(), iter([{"temperature": 0.0}] * 3 + [{"temperature": -1.0}])
    with pytest.raises(InputError):
        write(
            Session(decoder()), job_of(heard), lambda: next(asked), text=TEXT, ids=[], count=9,
            seed=1,
        )  # fmt: skip
    assert len(heard.of("token")) == 3 and not heard.of("written")


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
