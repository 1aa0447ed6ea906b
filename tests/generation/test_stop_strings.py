"""Stop strings: found across any borders, nothing of them shown, nothing else lost."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from clearhead.errors import InputError
from clearhead.generation.stop_strings import StopStrings, checked_stops

TEXT = st.text(alphabet="abc", max_size=30)


def run(pieces: list[str], stops: list[str]) -> tuple[list[str], str | None]:
    watch = StopStrings(stops)
    given = [watch.push(piece) for piece in pieces]
    return [*given, watch.flush()], watch.found


def test_what_could_become_a_stop_string_is_held_back() -> None:
    assert run(["x E", "N", "D"], ["END"]) == (["x ", "", "", ""], "END")
    assert run(["x E", "N", "x"], ["END"]) == (["x ", "", "ENx", ""], None)
    assert run(["x EN"], ["END"]) == (["x ", "EN"], None)
    assert run(["aab"], ["ab"])[0] == ["a", ""]


def test_the_first_one_counts_and_the_longer_of_two_at_one_place() -> None:
    assert run(["one two three"], ["three", "two"]) == (["one ", ""], "two")
    assert run(["one two"], ["tw", "two"]) == (["one ", ""], "two")
    assert run(["a!b", "c"], ["!"]) == (["a", "", ""], "!")  # nothing after it


@given(TEXT, st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=3), st.data())
def test_however_the_text_is_cut(text: str, stops: list[str], data: st.DataObject) -> None:
    places = [text.find(stop) for stop in stops if stop in text]
    wanted = text[: min(places)] if places else text
    pieces, rest = [], text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces.append(rest[:size])
        rest = rest[size:]
    given, found = run(pieces, stops)
    if not places:
        assert "".join(given) == wanted
    assert (found is None) == (not places)
    # A shorter stop string may be complete before a longer one that started earlier.
    assert text.startswith("".join(given))
    if len(stops) == 1:
        assert "".join(given) == wanted


def test_nothing_is_held_back_without_need() -> None:
    assert run(["a", "b", "c"], ["xyz"])[0] == ["a", "b", "c", ""]


@pytest.mark.parametrize("stop", [7, [7], [""], "", None, [None], {"a": 1}])
def test_unknown_kinds(stop: object) -> None:
    with pytest.raises(InputError, match="stop must be a string or several, none of them empty"):
        checked_stops(stop)


def test_known_kinds() -> None:
    assert checked_stops("a") == ("a",)
    assert checked_stops(["a", "b"]) == ("a", "b")
    assert checked_stops(()) == ()
