from __future__ import annotations

import re

from clearhead.views.terminal.render import plain_text
from clearhead.views.terminal.word import sentence, source_bars
from tests.shared.golden_pictures import KIDS, word


def test_the_sources_of_a_word_have_their_numbers() -> None:
    picture = word(KIDS, 9)
    text = plain_text(picture)
    for source in picture.sources[:6]:
        assert re.search(rf"{re.escape(source.mark.text)} +{source.weight:.2f}", text)
    assert f"{picture.hidden_mass:.2f}" in text


def test_the_line_below_a_sentence_has_the_heights_of_its_words() -> None:
    words, heights = (str(line) for line in list(sentence(word(KIDS, 9), 80))[:2])
    picture = word(KIDS, 9)
    best = picture.sources[0].mark.text
    at = words.index(f" {best} ") + 1
    assert heights[at : at + len(best)] == "█" * len(best)


def test_weak_sources_are_added_up() -> None:
    lines = [str(line) for line in source_bars(word(KIDS, 13), 80)]
    assert any(re.search(r"\d more words, together 0\.\d\d", line) for line in lines)
