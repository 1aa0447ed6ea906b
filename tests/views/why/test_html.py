from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.parts import Why
from clearhead.views.why import html
from clearhead.views.why.html import LISTED, why_page
from clearhead.views.why.text import percent, signed
from tests.shared.chromium import page_at
from tests.shared.explained_models import random_decoder, shown_why, why_of_a_date
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_a_head_opens_by_a_click_in_the_map(tmp_path: Path, width: int, dark: bool) -> None:
    strongest = shown_why().heads[0]
    with page_at(tmp_path, shown_why().html(), width=width, dark=dark) as page:
        assert page.locator("h1").inner_text().startswith("Why “#13” and not “#29”?")
        cell = page.locator(f'nav a[href="#why-{strongest.name}"]')
        assert cell.get_attribute("aria-label") == f"{strongest.name}: {signed(strongest.value)}"
        cell.click()
        rows = page.locator(f"#why-{strongest.name} table tr")
        first = rows.nth(1).inner_text().split()
        source = strongest.sources[0]
        weight = source.weight
        assert weight is not None
        assert first == [source.mark.text, f"{weight:.4f}", signed(source.value, 4).strip()]
        numbers = [one.inner_text() for one in page.locator(".word small").all()]
        values = {one.column: one.value for one in shown_why().sources}
        assert [one.strip() for one in numbers] == [
            signed(values[column]).strip() for column in range(7)
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
def test_every_head_opens_and_every_layer_has_a_bar(tmp_path: Path) -> None:
    why = make_wide()
    assert len(why.heads) > LISTED
    weakest = why.heads[-1].name
    with page_at(tmp_path, why_page(why)) as page:
        assert not page.locator(f"#why-{weakest}").is_visible()
        page.locator(f'nav a[href="#why-{weakest}"]').click()
        assert page.locator(f"#why-{weakest}").is_visible()
        said = [one.text_content() or "" for one in page.locator(".growth title").all()]
        assert [one.partition(";")[0] for one in said] == [
            f"{layer.name}: sum {signed(layer.sum).strip()}" for layer in why.layers
        ]


def make_wide() -> Why:
    """An explanation with more heads than the list has."""
    return make_why(random_decoder(layers=5), token_ids(3).tolist(), token=13, effects=False)


def test_of_a_long_text_some_heads_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_ROWS", 3 * 26)
    page = why_page(make_wide())
    assert page.count('class="evidence"') == 26 and "4 more heads are in the map" in page


@pytest.mark.browser
def test_the_page_of_an_encoder_decoder_shows_both_texts(tmp_path: Path) -> None:
    with page_at(tmp_path, why_of_a_date().html()) as page:
        assert page.locator(".sentence").count() == 2
        assert "March" in page.locator(".sentence").first.inner_text()


@pytest.mark.browser
def test_heads_are_chosen_for_comparison(tmp_path: Path) -> None:
    why = shown_why()
    assert why.effects is not None
    names = [part.name for part in why.heads]
    with page_at(tmp_path, why.html()) as page:
        rows = page.locator("table.compare tr.of").all()
        shown = [row.locator("th").inner_text() for row in rows if row.is_visible()]
        assert shown == names[:3]
        page.locator(f"#pick-{names[5]}").check()
        page.locator(f"#pick-{names[0]}").uncheck()
        line = page.locator(f"table.compare .of-{names[5]}")
        assert line.is_visible() and not page.locator(f"table.compare .of-{names[0]}").is_visible()
        effect = why.effects.of(names[5])
        assert effect is not None
        assert signed(effect.total).strip() in line.inner_text()
        assert percent(effect.probability) in line.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_all_numbers_of_compared_heads_are_in_sight(tmp_path: Path, width: int) -> None:
    why = shown_why()
    with page_at(tmp_path, why.html(), width=width) as page:
        line = page.locator(f"table.compare .of-{why.heads[0].name}")
        cells = line.locator("td").all()
        assert len(cells) == 6
        for cell in cells:
            box = cell.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width
