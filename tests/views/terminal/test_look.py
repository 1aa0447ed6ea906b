from __future__ import annotations

from clearhead.views.terminal.look import look_parts
from clearhead.views.terminal.parts import Drawn
from tests.shared.made_looks import made_look, translated_look, written_look


def shown(look: object) -> str:
    return Drawn(lambda width: look_parts(look, width)).plain(80)  # type: ignore[arg-type]


def test_a_look_goes_from_a_word_to_all_heads() -> None:
    look = made_look(word="they", head="L1H4")
    text = shown(look)
    assert text.startswith("3 layers × 6 heads ─")
    best = next(one for one in look.word("they", "L1H4").sources if one.mark.text != "they")
    assert (
        f"“they” looks most at “{best.mark.text}” ({best.weight:.2f}) in L1H4 (layer 1, head 4)"
        in text
    )
    assert "Over all 18 heads it looks most at" in text
    assert "All heads by their salience for “they”" in text and "◆" in text


def test_a_translation_shows_both_texts() -> None:
    text = shown(translated_look())
    assert "  read     le chat noir dort" in text and "  written  ⏵ the black cat sleeps" in text
    assert "(cross-attention layer 0, head" in text


def test_written_tokens_have_probabilities_and_sources() -> None:
    look = written_look()
    text = shown(look)
    part = text.split("Each written token, and the words that its query looked at\n")[1]
    assert [line.split()[:2] for line in part.splitlines()[:2]] == [
        ["scared", "50%"],
        ["of", "50%"],
    ]
    assert len(look.generated) == 11


def test_a_long_text_has_no_map() -> None:
    assert "every word (row)" not in shown(made_look("word " * 41, layers=1))
