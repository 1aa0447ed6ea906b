"""The step table as a page: every query, every step, vectors whole, Z and W_O."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.explain.worked_examples import worked_example
from clearhead.views.numbers import number_text, vector_text, weight_text
from clearhead.views.page.html import html_page
from clearhead.views.page.steps import WHOLE, steps_fragment
from tests.shared.chromium import page_at
from tests.shared.explain_models import decoder
from tests.shared.golden_pictures import steps


def text_of(html: str) -> str:
    return re.sub(r"<[^>]+>", " ", html)


@pytest.mark.parametrize("name", ["selfish", "batch", "action"])
def test_every_query_has_every_number(name: str) -> None:
    tables = worked_example(name)
    shown = text_of(steps_fragment(tables[0]))
    for table in tables:
        assert vector_text(table.query, WHOLE) in shown
        assert vector_text(table.output, WHOLE) in shown
        for row in table.rows:
            for vector in (row.key, row.value, row.weighted):
                assert vector_text(vector, WHOLE) in shown
            assert weight_text(row.weight) in shown and number_text(row.score) in shown


def test_masks_caps_biases_sinks_and_hostile_words() -> None:
    shown = steps_fragment(steps())
    for text in ("−∞ future", "cap 30", "+ bias", "sink", "W<sub>O</sub>", "&lt;/script&gt;"):
        assert text in shown
    assert shown.count("</script>") == 1 and shown.endswith("</script>")


def test_a_real_head_shows_z_and_w_o_and_opens_long_vectors() -> None:
    look = ch.look(decoder(), "the students opened their books", word="their", head="L1H2")
    table = look.steps().insight
    assert table.queries is not None
    tables = table.queries()
    assert [one.word for one in tables] == [mark.text for mark in look.rows]
    assert table.outputs is not None and table.outputs.projected
    html = steps_fragment(table)
    whole = vector_text(table.outputs.result, len(table.outputs.result))
    assert len(table.outputs.result) > WHOLE and f"</summary>{whole}</details>" in html
    assert "tiny" in html and html.count(' class="pick"') == len(tables)


@pytest.mark.browser
def test_queries_are_chosen_by_a_click_and_narrow_screens_scroll(tmp_path: Path) -> None:
    tables = worked_example("action")
    with page_at(tmp_path, html_page(tables[0]), width=400) as page:
        assert page.locator(".panel:visible").count() == 1
        page.locator(".queries label", has_text="results").click()
        said = page.locator(".panel:visible").inner_text()
        assert vector_text(tables[2].query, WHOLE) in said
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
