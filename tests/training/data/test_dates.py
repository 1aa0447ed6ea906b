"""The built-in model: dates in many forms, right on days that it never saw, and looking right."""

from __future__ import annotations

from datetime import date

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.data.batches.pairs import pairs_in_order
from clearhead.training.data.dates import (
    FORMS,
    HELD_OUT_FORMS,
    clear,
    date_pairs,
    is_held_out,
    parts,
    written,
)


def test_forms_by_hand() -> None:
    day = date(2021, 3, 3)
    assert written(day, "the {nth} of {month}, {year}") == "the 3rd of March, 2021"
    assert written(day, "{wday} {mon} {day} {year}") == "Wed Mar 3 2021"
    assert written(day, "{day2}.{number}.{year} {word}") == "03.3.2021 third"
    assert [written(date(2004, 1, n), "{nth}") for n in (1, 11, 22, 13)] == [
        "1st", "11th", "22nd", "13th",
    ]  # fmt: skip
    assert parts(day, "{nth} of {year}") == [("3rd", "day"), (" of ", ""), ("2021", "year")]


def test_only_clear_dates_are_written_with_slashes() -> None:
    slashed = "{number2}/{day2}/{year}"
    assert not clear(date(2021, 3, 5), slashed)
    assert clear(date(2021, 3, 17), slashed) and clear(date(2021, 3, 3), slashed)
    assert clear(date(2021, 3, 5), "{year}/{number2}/{day2}")


def test_held_out_days_are_never_learned() -> None:
    learned = {target for _, target in date_pairs(2000, 1, held_out=False)}
    assert not any(is_held_out(date.fromisoformat(target)) for target in learned)
    assert not set(FORMS) & set(HELD_OUT_FORMS)


def test_the_files_are_the_known_ones() -> None:
    store = ModelStore()
    assert store.damaged("dates") == {}
    assert sum(file.stat().st_size for file in store.folder_of("dates").iterdir()) < 2_000_000


@pytest.mark.parametrize(("forms", "least"), [(FORMS, 0.99), (HELD_OUT_FORMS, 0.98)])
def test_right_on_days_that_it_never_saw(forms: tuple[str, ...], least: float) -> None:
    loaded = ch.load("dates")
    tokenizer, model = loaded.tokenizer, loaded.model
    assert tokenizer is not None
    pairs = [
        (tokenizer.encode(source), [*tokenizer.encode(target), 2])
        for source, target in date_pairs(1000, 11, held_out=True, forms=forms)
    ]
    right = 0
    for batch in pairs_in_order(pairs, batch_tokens=8192, start=1, pad=0):
        real = torch.arange(batch.source.shape[1]) < batch.source_counts[:, None]
        best = model(batch.source, batch.ids, source_real=real).argmax(-1)
        right += int(((best == batch.targets) | (batch.targets == IGNORED)).all(dim=1).sum())
    assert right / 1000 >= least


def test_it_translates() -> None:
    loaded = ch.load("dates")
    for text, wanted in {
        "3rd of March 2021": "2021-03-03",
        "Monday, 5 July 2004": "2004-07-05",
        "Aug 7, 1986": "1986-08-07",
        "03/17/1999": "1999-03-17",
    }.items():
        assert ch.beam_search(loaded, text, beams=3, engine=False)[0].text == wanted


@pytest.mark.parametrize("form", ["{nth} of {month} {year}", "{weekday}, {mon} {day}, {year}"])
@pytest.mark.parametrize("day", [date(2021, 3, 3), date(2004, 7, 15), date(1986, 8, 7)])
def test_year_looks_at_year_month_at_month_day_at_day(day: date, form: str) -> None:
    loaded = ch.load("dates")
    assert loaded.tokenizer is not None
    owners = [tells for text, tells in parts(day, form) for _ in text]
    target = [1, *loaded.tokenizer.encode(day.isoformat())]
    with ch.watch(loaded.model) as seen:
        source = torch.tensor([loaded.tokenizer.encode(written(day, form))])
        loaded.model(source, torch.tensor([target]))
    for kind, places in (("year", range(4)), ("month", (5, 6)), ("day", (8, 9))):
        mine = torch.tensor([owner == kind for owner in owners])
        for place in places:  # the query that writes character n stands at n
            shares = [float(seen[f"C0H{head}"].row(place)[mine].sum()) for head in range(2)]
            assert sum(shares) / 2 > 0.5, (kind, place, shares)
