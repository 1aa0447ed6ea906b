from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from clearhead.views.escape import markup_text, plain_json, script_json
from clearhead.visible import visible_text

HOSTILE = [
    "</script><script>alert(1)</script>", "<!--", "-->", "]]>", "\u2028\u2029", "\"'`", "&amp;",
    "<img src=x onerror=alert(1)>", "${x}", "\x00\x01\x1f\x7f\x9f", "\ud800", "\ufffe", "\\u003c",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_markup_holds_no_markup_and_is_well_formed(text: str) -> None:
    escaped = markup_text(text)
    assert not set("<>\"'") & set(escaped)
    element = ElementTree.fromstring(f'<a b="{escaped}">{escaped}</a>')
    assert element.text == element.get("b") == visible_text(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_script_data_cannot_end_its_script_and_comes_back_whole(text: str) -> None:
    escaped = script_json({text: [text, 1.5, None]})
    assert escaped.isascii()
    assert not set("<>&") & set(escaped)
    assert json.loads(escaped) == {text: [text, 1.5, None]}


def test_script_data_cannot_turn_the_text_around_it() -> None:
    text = "a\u202eb\u2066\u200f\\u202e\\"
    assert json.loads(script_json([text])) == ["a�b��\\u202e\\"]
    assert "202e" not in markup_text("\u202e") and markup_text("\u202e") == "�"


def test_json_shows_every_character_and_stays_the_same() -> None:
    data = ["\x1b\x7f\x9b\u202e\u200b\ufeffé"]
    shown = plain_json(json.dumps(data, ensure_ascii=False))
    assert shown == '["\\u001b\\u007f\\u009b\\u202e\\u200b\\ufeffé"]'
    assert json.loads(shown) == data


def test_control_characters_are_shown_by_their_pictures() -> None:
    assert visible_text("a\x00b\x1b\x7f\x85\ud800") == "a␀b␛␡��"
    assert markup_text("<b>") == "&lt;b&gt;"


def test_numbers_that_json_does_not_know_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))
