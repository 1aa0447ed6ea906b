from __future__ import annotations

from clearhead.views.shown import ShownGallery, ShownHead, ShownWord
from tests.shared.golden_pictures import KIDS, gallery, head, word


def test_a_head_has_its_fields_and_its_picture() -> None:
    shown = ShownHead(head(KIDS))
    assert shown.head == "L1H2" and shown.rows[1].text == "kids"
    assert shown.weights is shown.insight.weights
    assert str(shown).startswith("  L1H2, every word (row)")
    assert shown.csv().startswith("head,row,row_word")


def test_a_word_has_its_sources() -> None:
    shown = ShownWord(word(KIDS, 9))
    assert shown.mark.text == "they" and shown.sources[0].weight == max(
        source.weight for source in shown.sources
    )
    assert shown.svg().startswith("<svg")


def test_a_gallery_has_names_and_maps() -> None:
    shown = ShownGallery(gallery())
    assert shown.names[1][2] == "L1H2" and shown.maps.shape[:2] == (2, 3)
