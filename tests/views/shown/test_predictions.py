from __future__ import annotations

import clearhead as ch


def test_what_is_shown_has_the_fields_of_the_insight() -> None:
    look = ch.look("dates", "3rd of March 2021")
    found = look.predictions("2021")
    assert found.position == found.mark.tokens[-1] and found.rest < 0.01
    assert found.likeliest[0] == found.came and found.surprise is not None
    every = look.predictions()
    assert every.tokens[1:5] == ("2", "0", "2", "1") and len(every.all) == len(every.tokens)
    assert [mark.text for mark in every.marks][1] == "2021" and 0 <= every.bits < 0.01
    assert len(every.all[0].likeliest) == 5
    lens = look.lens()
    assert lens.first == lens.appears
    assert len(lens.tokens[0]) == len(lens.marks) == len(lens.appears)
