"""Every renderer says the same: numbers are read back and compared with a second computation.

Renderers × pools × measures × hidden columns × words or tokens × kinds of attention × length.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.explain.long_map import long_map
from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids, HeadPicture, Pool, WordPicture, headline_of
from clearhead.views.numbers import weight_text
from clearhead.views.page.data import page_of_picture
from clearhead.views.page.html import html_page
from clearhead.views.svg.render import svg
from clearhead.views.tables import csv_text, json_text
from clearhead.views.terminal.render import plain_text
from tests.shared.chromium import page_at
from tests.shared.page_blocks import dense
from tests.shared.told_looks import HEADS, KINDS, Told, Wanted, told_look

POOLS: tuple[Pool, ...] = ("max", "mean", "sum")
MEASURES = ("weight", "weight·‖v‖")
HIDES = ("first and special", "special", "nothing")
UNIT = 1.01e-4  # two roundings of float32 numbers may differ by one unit
EVERY = itertools.product(range(4), range(3), range(2), range(3), range(2))
# Each combination of options with one kind of attention, each pair of options with every kind.
GRID = [
    (KINDS[kind], POOLS[pool], MEASURES[measure], HIDES[hide], bool(words))
    for kind, pool, measure, hide, words in EVERY
    if (kind + pool + measure + hide + 2 * words) % 4 == 0
]


def test_the_grid_has_every_combination_and_every_pair() -> None:
    assert len({one[1:] for one in GRID}) == len(GRID) == 36
    for kind in KINDS:
        options = [one[1:] for one in GRID if one[0] == kind]
        for first, second in itertools.combinations(range(4), 2):
            pairs = {(one[first], one[second]) for one in options}
            assert len(pairs) == len({one[first] for one in options}) * len(
                {one[second] for one in options}
            )


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_of_heads_layers_and_all_heads(kind: str) -> None:
    for _, pool, measure, hide, words in (one for one in GRID if one[0] == kind):
        told = told_look(kind, pool=pool, measure=measure, hide=hide, words=words)
        letter = told.look.layers[0].name[0]
        for name, layers, head in (
            (f"{letter}1H2", [f"{letter}1"], 2),
            (f"{letter}1", [f"{letter}1"], None),
            ("all", [f"{letter}0", f"{letter}1"], None),
        ):
            wanted = told.wanted(layers, told.look.aids, head)
            picture = told.look.head(name)
            _check_head(picture, wanted, single=head is not None)
            row = 0 if name == "all" and words else len(picture.rows) - 2
            _check_word(told.look.word(row, name), wanted, row, several=head is None)


def _check_head(picture: HeadPicture, wanted: Wanted, single: bool) -> None:
    context = (picture.head, picture.aids)
    assert np.abs(picture.weights - wanted.weights).max() < UNIT, context
    assert np.abs(picture.hidden_mass - wanted.mass).max() < UNIT, context
    assert (picture.hidden_mass <= 1 + UNIT).all(), context
    assert list(picture.hidden) == wanted.hidden and (picture.visible == wanted.visible).all()
    told = json.loads(json_text(picture))
    assert told["weights"] == picture.weights.tolist() == np.round(picture.weights, 4).tolist()
    lines = list(csv.DictReader(io.StringIO(csv_text(picture))))
    numbers = [float(line[picture.aids.measure]) for line in lines]
    assert numbers == picture.weights.flatten().tolist(), context
    assert [line["masked"] == "false" for line in lines] == picture.visible.flatten().tolist()
    drawn = [float(one) for one in re.findall(r'font-size="11"[^>]*>(\d*\.\d\d)<', svg(picture))]
    shown = [
        float(weight_text(float(picture.weights[row, column])))
        for row, column in np.ndindex(*picture.weights.shape)
        if picture.visible[row, column] and column not in picture.hidden
        and picture.weights[row, column] >= 0.005
    ]  # fmt: skip
    assert drawn == shown, context
    assert picture.pooled == (None if single else picture.aids.pool)
    if picture.aids.measure != "weight":
        assert "·‖v‖" in plain_text(picture) and "  weight" not in svg(picture)


def _check_word(picture: WordPicture, wanted: Wanted, row: int, *, several: bool) -> None:
    context = (picture.row, picture.head, picture.aids)
    numbers = wanted.weights[row]
    assert np.abs(picture.strengths - numbers).max() < UNIT, context
    assert abs(picture.hidden_mass - wanted.mass[row]) < UNIT
    open_columns = [one for one in range(len(numbers)) if one not in wanted.hidden]
    order = [source.column for source in picture.sources]
    assert sorted(order) == [one for one in open_columns if numbers[one] > 0], context
    weights = [source.weight for source in picture.sources]
    assert weights == sorted(weights, reverse=True) == picture.strengths[order].tolist()
    assert picture.beyond[0] == pytest.approx(numbers[open_columns].sum(), abs=UNIT)
    if not several:
        assert picture.beyond[0] + picture.hidden_mass == pytest.approx(1, abs=3 * UNIT)
    best = headline_of(picture)
    assert (best.rests or 0) == (picture.hidden_mass if best.rests else 0)
    strongest = max((numbers[one] for one in open_columns), default=0.0)
    assert best.weight == pytest.approx(
        strongest if strongest >= 0.00505 else best.weight, abs=UNIT
    )
    assert (best.rests is None) or wanted.mass[row] > strongest - UNIT
    lines = plain_text(picture).splitlines()
    heading = next(i for i, line in enumerate(lines) if re.match(r"\s+(weight|·‖v‖)", line))
    texts = [picture.marks[source.column].text for source in picture.sources[:6]]
    for line, source, text in zip(lines[heading + 1 :], picture.sources, texts, strict=False):
        if source.weight < 0.005:
            break
        assert line.split()[:2] == [text, weight_text(source.weight)], (line, context)
        named = re.search(r"[LC]\dH\d", line)
        assert bool(named) == (several and picture.aids.pool == "max"), context
    bars = re.findall(r'x="558"[^>]*>(\d+\.\d\d)<', svg(picture))
    assert bars == [weight_text(one) for one in weights[:8] if one >= 0.005], context


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_long_texts(kind: str) -> None:
    for _, pool, measure, hide, _ in (one for one in GRID if one[0] == kind):
        told = told_look(kind, 3, pool=pool, measure=measure, hide=hide)
        name = f"{told.look.layers[0].name[0]}1"
        for head in (None, 1):
            picture = long_map(told.look, name if head is None else f"{name}H{head}", size=11)
            aids = replace(told.look.aids, words=False)
            _check_map(picture, _tokens(told, name, aids, head), told, aids)


def _tokens(told: Told, name: str, aids: Aids, head: int | None) -> np.ndarray:
    heads = range(HEADS) if head is None else [head]
    return np.stack([told._head(name, number, aids) for number in heads])


def _check_map(picture: HeadPicture, weights: np.ndarray, told: Told, aids: Aids) -> None:
    hidden = [0] if aids.hide == "first and special" and told.causal else []
    hidden += told.special if aids.hide != "nothing" else []
    mass = weights[:, :, hidden].sum(axis=2).mean(axis=0)
    weights = weights.copy()
    weights[:, :, hidden] = 0
    reduce: Any = {"max": np.max, "mean": np.mean, "sum": np.sum}[aids.pool]
    for row, mark in enumerate(picture.rows):
        for column, other in enumerate(picture.columns):
            cell = weights[:, mark.tokens][:, :, other.tokens]
            assert abs(picture.weights[row, column] - reduce(cell)) < UNIT, (aids, row, column)
        assert abs(picture.hidden_mass[row] - mass[list(mark.tokens)].mean()) < UNIT


def test_large_sums_are_whole_on_a_page_of_one_picture() -> None:
    told = told_look("causal", pool="sum")
    picture = told.look.head("all")
    scaled = HeadPicture(**vars(picture) | {"weights": picture.weights * 9})
    data = page_of_picture(scaled)
    assert (scaled.weights > 6.5536).any()
    found = dense(data.blocks.by_name["rows"], len(picture.columns))
    assert np.abs(found - scaled.weights * 1e4).max() < 0.51
    assert data.meta["cut"]["most"] == 0


def test_halves_are_the_same_everywhere() -> None:
    """Weights such as 0.1250: text, picture and table; the page is below."""
    picture = _with_halves()
    shown = [weight_text(float(one)) for one in picture.weights[-1]]
    assert shown[1:4] == ["0.02", "0.03", "0.04"]
    drawn = re.findall(r'font-size="11"[^>]*>(\d*\.\d\d)<', svg(picture))
    assert drawn[-len(shown) :] == [one.removeprefix("0") for one in shown]
    numbers = [float(one["weight"]) for one in csv.DictReader(io.StringIO(csv_text(picture)))]
    assert numbers == picture.weights.flatten().tolist()


def _with_halves() -> HeadPicture:
    picture = told_look("causal", hide="nothing").look.head("L1H2")
    weights = np.zeros_like(picture.weights)
    count = weights.shape[1]
    weights[-1] = (
        np.round(0.005 + 0.01 * np.arange(count) + 0.0, 4) + np.r_[0.1, np.zeros(count - 1)]
    )
    return replace(picture, weights=np.round(weights, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_reason_names_the_head_of_the_headline(kind: str) -> None:
    for head in (None, "L1" if kind != "cross" else "C1"):
        look = Look(told_look(kind).look.seen, head=head)
        said = " ".join(plain_text(look).split())
        headline = re.search(r"looks most at .*? in ([LC]\dH\d)", said)
        reason = re.search(r"Why this: (.*?) in ([LC]\dH\d) is", said)
        assert headline is not None and reason is not None, said
        if head is None:
            assert reason[2] == headline[1] == look.chosen_head, said
        else:  # it tells why the word, and that by another measure than the largest weight
            assert f"most salient in {head}: " in reason[1], said


@pytest.mark.browser
def test_halves_on_the_page(tmp_path: Path) -> None:
    picture = _with_halves()
    last = len(picture.rows) - 1
    with page_at(tmp_path, html_page(picture)) as page:
        page.wait_for_selector("[data-ready]")
        page.locator(".toolbar select").nth(0).select_option(str(last))
        numbers = sorted(picture.weights[last].tolist(), reverse=True)[:9]
        assert [text for _, text in bars_of(page)] == [weight_text(one) for one in numbers]


def test_every_listed_source_stands_in_the_sentence() -> None:
    """Also of a long text, in the terminal and in the picture."""
    look = told_look("causal", 9).look
    for row in (37, len(look.rows) - 1):
        picture = look.word(row)
        lines = plain_text(picture).splitlines()
        heading = next(i for i, line in enumerate(lines) if re.match(r"\s+weight", line))
        sentence = " ".join(lines[1:heading])
        texts = re.findall(r">([^<]+)</text>", svg(picture))
        for source in picture.sources[:6]:
            assert source.mark.text in sentence and source.mark.text in texts, source


def bars_of(page: Any) -> list[list[str]]:
    found: list[list[str]] = page.evaluate(
        """() => [...document.querySelectorAll('.bars-part:first-child .bar')].map((bar) =>
        [bar.querySelector('.bar-name').textContent, bar.querySelector('.number').textContent])"""
    )
    return found


@pytest.mark.browser
@pytest.mark.parametrize(
    ("kind", "measure"), [("causal", 0), ("window", 1), ("bidirectional", 0), ("cross", 1)]
)
def test_the_page_shows_the_same(tmp_path: Path, kind: str, measure: int) -> None:
    told = told_look(kind, measure=MEASURES[measure])
    letter = told.look.layers[0].name[0]
    names = {"all": f"all {2 * HEADS} heads", f"{letter}1": f"{letter}1, its {HEADS} heads",
             f"{letter}0H2": f"\u2003{letter}0H2"}  # fmt: skip
    with page_at(tmp_path, html_page(told.look)) as page:
        page.wait_for_selector("[data-ready]")
        word, head, pool = (page.locator(".toolbar select").nth(place) for place in range(3))
        for name, label in names.items():
            head.select_option(label=label)
            for how in POOLS if "H" not in name else POOLS[:1]:
                if "H" not in name:
                    pool.select_option(how)
                page.wait_for_function(SHOWN)
                look = told.look.with_aids(pool=how)
                layers = [f"{letter}0", f"{letter}1"] if name == "all" else [name[:2]]
                place = int(name[-1]) if "H" in name else None
                _check_cells(page, told.wanted(layers, look.aids, place), (name, how))
                for row in (3, len(look.rows) - 2):
                    word.select_option(str(row))
                    picture = look.word(row, None if name == "all" else name)
                    wanted = [
                        [one.mark.text, weight_text(one.weight)]
                        for one in picture.sources[:9]
                        if one.weight >= 0.005
                    ]
                    assert bars_of(page) == wanted, (name, how, row)
                    _check_headline(page.locator(".headline").inner_text(), picture)


SHOWN = """() => {
  const { view } = document.querySelector(".clearhead");
  return view.picture === view.pictureOf(view.choice);
}"""
CELLS = """() => {
  const { picture } = document.querySelector(".clearhead").view;
  return Array.from({ length: picture.rowCount }, (_, row) => ({
    mass: picture.hiddenMass(row),
    cells: Array.from({ length: picture.columnCount }, (_, column) =>
      [picture.weight(row, column), picture.visible(row, column)]) }));
}"""


def _check_cells(page: Any, wanted: Wanted, context: object) -> None:
    """Every cell that the page holds: its number, its mask; and what rests on hidden words."""
    for row, found in enumerate(page.evaluate(CELLS)):
        numbers = np.array([weight for weight, _ in found["cells"]])
        assert np.abs(numbers - wanted.weights[row]).max() < UNIT, (context, row)
        assert [seen for _, seen in found["cells"]] == wanted.visible[row].tolist(), (context, row)
        hidden = wanted.mass[row] if wanted.hidden else 0.0
        assert abs(found["mass"] - hidden) < UNIT, (context, row)


def _check_headline(said: str, picture: WordPicture) -> None:
    best = headline_of(picture)
    assert weight_text(best.weight) in said
    assert ("rests" in said) == (best.rests is not None), said
    if best.rests is not None:
        assert said.startswith(weight_text(best.rests))
    assert ("itself" in said) == best.itself, said


@pytest.mark.browser
def test_what_a_long_text_s_page_does_not_hold_is_said(tmp_path: Path) -> None:
    told = told_look("causal", 9)
    look = Told(**vars(told) | {"look": told.look.with_aids()}).look
    last = len(look.rows) - 1
    wanted = told.wanted(["L0", "L1"], look.aids)
    weakest = int(np.argmin(np.where(wanted.weights[last] > 2e-4, wanted.weights[last], 9)))
    with page_at(tmp_path, html_page(look)) as page:
        page.wait_for_selector("[data-ready]")
        page.locator(".toolbar select").nth(1).select_option(label=f"all {2 * HEADS} heads")
        page.wait_for_function(SHOWN)
        said = page.evaluate(
            "([row, column]) => document.querySelector('.clearhead').view.heatmap"
            ".tipLines({row, column})[1]",
            [last, weakest],
        )
    assert said == "too weak to be in this file"
