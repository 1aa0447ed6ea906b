from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from clearhead.views.terminal.render import plain_text
from clearhead.views.why.text import signed
from tests.shared.explained_models import shown_why, why_of_a_date

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_terminal_shows_words_heads_sum_and_proof() -> None:
    text = str(shown_why())
    assert max(map(len, text.splitlines())) <= 80
    assert "Why “#13” and not “#29”? The model prefers “#29”: the difference of" in text
    assert "#" in text.splitlines()[0]  # the tokens that were given as ids
    for part in shown_why().heads[:8]:
        effects = shown_why().effects
        effect = None if effects is None else effects.of(part.name)
        assert effect is not None
        numbers = (signed(number).strip() for number in (part.value, effect.total))
        assert re.search(" +".join([part.name, *map(re.escape, numbers)]), text)
    assert f"sum                     {signed(shown_why().total):>6}".split() == [
        "sum", signed(shown_why().total).strip(),
    ]  # fmt: skip
    assert "exact, to" in text and "Effect: the difference with a head" in text
    assert text == str(shown_why()) and repr(shown_why()).startswith(text.splitlines()[0])


def test_an_encoder_decoder_shows_what_it_read_and_one_layer_no_growth() -> None:
    lines = str(why_of_a_date()).splitlines()
    assert [line.strip() for line in lines[:2]] == ["3rd of March 2021", "2021-"]
    assert not any("Layer by layer" in line for line in lines)
    assert not any(not one.strip() and not two.strip() for one, two in pairwise(lines))
    assert not any("0.00" in line and "against" in line for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = plain_text(shown_why().insight, width).splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_the_longest_bar_against_stays_on_its_line(width: int) -> None:
    why = shown_why().insight
    against = replace(why, sources=tuple(replace(one, value=-9.0) for one in why.sources))
    lines = [line.strip() for line in plain_text(against, width).splitlines()]
    assert "against" not in lines and sum(line.endswith("█ against") for line in lines) > 3


@pytest.mark.parametrize("width", [60, 80])
def test_a_head_stays_on_its_line(width: int) -> None:
    why = why_of_a_date().insight
    lines = plain_text(why, width).splitlines()
    for part in why.heads[:8]:
        (line,) = [one for one in lines if one.startswith(f"    {part.name} ")]
        assert line.rstrip().endswith(("✓", "✗"))
