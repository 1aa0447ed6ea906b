from __future__ import annotations

import clearhead as ch


def test_what_is_shown_has_the_fields_of_the_insight() -> None:
    look = ch.look("dates", "3rd of March 2021")
    found = look.predictions("2021")
    assert found.position == found.mark.tokens[-1] and found.rest < 0.01
    assert found.likeliest[0] == found.came and found.surprise is not None
    lens = look.lens()
    assert len(lens.tokens[0]) == len(lens.marks) == len(lens.appears)
