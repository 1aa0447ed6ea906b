"""The page of a difference: both maps of a head, what changed in them framed."""

from __future__ import annotations

import re

import numpy as np

from clearhead.explain.difference import Difference, make_difference
from clearhead.explain.pictures import LEAST
from clearhead.views.numbers import weight_text
from clearhead.views.page.difference import MARKED, difference_fragment
from tests.shared.told_looks import told_look

Cell = tuple[str, str]  # classes, text


def maps_of(page: str) -> list[list[list[Cell]]]:
    """Every map of the page as rows of cells, read back from its HTML."""
    found = []
    for table in re.findall(r'<table class="map">.*?<tbody>(.*?)</tbody>', page):
        rows = re.findall(r"<tr>(.*?)</tr>", table)
        cell = r'<td(?: class="([^"]*)")?(?: title="[^"]*")?>([^<]*)</td>'
        found.append([re.findall(cell, row) for row in rows])
    return found


def check_maps(difference: Difference) -> int:
    """Compare every cell with a second computation; return how many are framed."""
    framed = 0
    pages = maps_of(difference_fragment(difference))
    assert len(pages) == 2 * len(difference.maps) > 0
    for number, maps in enumerate(difference.maps):
        for side in (0, 1):
            picture, other = maps[side], maps[1 - side]
            rows = {pair[side]: pair[1 - side] for pair in difference.rows}
            columns = {pair[side]: pair[1 - side] for pair in difference.columns}
            for row, column in np.ndindex(*picture.weights.shape):
                kinds, text = pages[2 * number + side][row][column]
                if column in picture.hidden or not picture.visible[row, column]:
                    assert (kinds, text) == ("blank", "")
                    continue
                weight = float(picture.weights[row, column])
                shown = weight_text(weight).removeprefix("0") if weight >= LEAST else ""
                there = (
                    other.weights[rows[row], columns[column]]
                    if row in rows and column in columns else 0.0
                )  # fmt: skip
                hidden = columns.get(column) in other.hidden
                changed = row in rows and not hidden and abs(weight - there) >= MARKED
                assert text == shown and ("changed" in kinds) == changed
                framed += changed
    return framed


def test_every_cell_of_two_looks() -> None:
    told = told_look("causal")
    assert check_maps(make_difference(told.look, told_look("window").look)) > 0


def test_a_text_with_a_word_more_frames_what_only_one_has() -> None:
    short, long = told_look("causal").look, told_look("causal", 2).look
    difference = make_difference(short, long)
    assert difference.new and check_maps(difference) > 0


def test_what_is_hidden_on_one_side_is_not_framed_on_the_other() -> None:
    bare = told_look("causal", hide="nothing").look
    assert check_maps(make_difference(told_look("window").look, bare)) > 0


def test_texts_that_are_too_long_have_lists_only() -> None:
    look = told_look("causal", 9).look
    difference = make_difference(look, look)
    page = difference_fragment(difference)
    assert not difference.maps and maps_of(page) == [] and "Nothing changed" in page


def test_models_are_named_and_their_maps_share_one_scale() -> None:
    told, other = told_look("causal"), told_look("window")
    told.look.name, other.look.name = "a<b", "c"
    page = difference_fragment(make_difference(told.look, other.look))
    assert "what changed · a&lt;b and c" in page and "in a&lt;b" in page and "in c" in page
