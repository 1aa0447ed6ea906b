from __future__ import annotations

import pytest

from clearhead.explain.pictures import HeadPicture, WordPicture
from clearhead.views.formats import FORMATS, one_picture
from tests.shared.made_looks import made_look, translated_look


@pytest.mark.parametrize(
    ("name", "start"),
    [("html", b"<!doctype"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"what,head,"),
     ("json", b"{"), ("txt", b"3 layers")],
)  # fmt: skip
def test_every_format_of_a_look(name: str, start: bytes) -> None:
    assert FORMATS[name](made_look()).startswith(start)


def test_the_parts_of_a_look_that_are_drawn() -> None:
    look = made_look(word="they", head="L1H4")
    word = one_picture(look)
    assert isinstance(word, WordPicture) and (word.mark.text, word.head) == ("they", "L1H4")
    aligned = one_picture(translated_look())
    assert isinstance(aligned, HeadPicture) and aligned.kind == "cross"
    assert one_picture(word) is word
