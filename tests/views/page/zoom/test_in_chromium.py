"""The map page in a real browser: every tile's numbers read back, and what people do with it."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.explain.long_map import long_map
from clearhead.explain.pictures import HeadPicture
from clearhead.explain.zoom import zoomed_map
from clearhead.explain.zoom.zoomed_map import ZoomedMap
from clearhead.trace.zoom import Tiles, grid, pyramid, small_maps
from clearhead.views.escape import script_json
from clearhead.views.page.files import style
from clearhead.views.page.html import html_page, program
from clearhead.views.page.zoom import page as map_page
from clearhead.views.page.zoom import tile_file
from clearhead.views.page.zoom.axis import axis_json
from clearhead.views.page.zoom.page import SCRIPTS
from clearhead.views.page.zoom.tile_bytes import exact_bytes
from tests.shared.chromium import page_at, soon
from tests.shared.told_looks import HEADS, Told, told_look
from tests.trace.zoom.zoomed import plain_cells

pytestmark = pytest.mark.browser

TIMES = 6  # 72 tokens and more
READ = """async () => {
    const { source } = document.querySelector('.clearhead').view;
    const found = [];
    for (let level = 0; level < source.info.levels; level++) {
        const side = source.info.tile * 2 ** level;
        for (let row = 0; row * side < source.info.rows; row++)
            for (let column = 0; column * side < source.info.columns; column++) {
                const tile = await source.tile(level, row, column);
                found.push([level, row, column, tile && tile.columns, tile && [...tile.numbers]]);
            }
    }
    return found;
}"""


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several levels of several tiles in a short text."""
    for module in (grid, zoomed_map, tile_file):
        monkeypatch.setattr(module, "TILE", 16)


def picture_of(told: Told, head: int | None) -> HeadPicture:
    name = f"{told.look.layers[0].name[0]}1"
    return long_map(told.look, name if head is None else f"{name}H{head}", size=11)


def opened(page: Any) -> Any:
    page.wait_for_selector('[data-ready] [data-loaded="true"]')
    return page


DRAWN = """() => {
    const { zoom } = document.querySelector('.clearhead').view;
    return !zoom.wanted && zoom.element.dataset.loaded === 'true';
}"""


@pytest.mark.parametrize(
    ("kind", "pool", "measure", "hide", "head"),
    [
        ("causal", "max", "weight", "first and special", 1),
        ("window", "sum", "weight", "nothing", None),
        ("bidirectional", "mean", "weight·‖v‖", "special", None),
        ("cross", "max", "weight·‖v‖", "nothing", 0),
    ],
)
def test_every_tile_of_the_page_is_exact(
    tmp_path: Path, kind: str, pool: str, measure: str, hide: str, head: int | None
) -> None:
    told = told_look(kind, TIMES, pool=pool, measure=measure, hide=hide)
    aids = replace(told.look.aids, words=False)
    name = f"{told.look.layers[0].name[0]}1"
    heads = range(HEADS) if head is None else [head]
    weights = np.stack([told._head(name, number, aids) for number in heads])
    visible = np.stack([told.seen[name]] * len(heads))
    with page_at(tmp_path, html_page(picture_of(told, head))) as page:
        opened(page)
        tiles = page.evaluate(READ)
        hidden = tuple(told.hidden(aids))
        assert page.evaluate(
            "document.querySelector('.clearhead').view.source.info.hidden"
        ) == list(hidden)
    assert {level for level, *_ in tiles} == {0, 1, 2, 3}
    for level, row, column, width, numbers in tiles:
        whole = plain_cells(weights, visible, 1 << level, pool, hidden)
        wanted = whole[row * 16 : row * 16 + 16, column * 16 : column * 16 + 16]
        found = np.array(numbers).reshape(-1, width)
        assert found.shape == wanted.shape
        assert ((found < 0) == (wanted < 0)).all()
        assert np.abs(found - wanted).max() < 5.1e-5, (level, row, column)


@pytest.fixture(scope="module")
def told() -> Told:
    return told_look("causal", TIMES)


def weight_at(told: Told, row: int, column: int) -> float:
    return float(told.weights["L1"][1][row, column])


def under(page: Any) -> tuple[str, str]:
    return page.locator(".zoom-number").inner_text(), page.locator(".zoom-texts").inner_text()


def test_wheel_drag_and_pinch_reach_single_weights(tmp_path: Path, told: Told) -> None:
    with page_at(tmp_path, html_page(picture_of(told, 1))) as page:
        opened(page)
        assert "The whole map: 72 × 72 tokens." in page.locator(".zoom-status").inner_text()
        box = page.locator(".zoom-map").bounding_box()
        x, y = box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.7
        page.mouse.move(x, y)
        for _ in range(12):
            page.mouse.wheel(0, -240)
        page.wait_for_function(f"({STATE})()[0] === 44")
        _, row, column, left = page.evaluate(STATE)
        soon(page.locator(".zoom-number"), f"{weight_at(told, row, column):.4f}")
        texts = under(page)[1]
        assert f"query {row}" in texts and f"key {column}" in texts
        page.mouse.down()
        page.mouse.move(x + 130, y, steps=4)
        page.mouse.up()
        moved = page.evaluate(STATE)[3]
        assert left - moved == pytest.approx(min(left, 130 / 44), abs=0.2)
        page.evaluate(PINCH)
        assert page.evaluate(STATE)[0] == pytest.approx(22, rel=0.02)


STATE = """() => {
    const { geometry, position } = document.querySelector('.clearhead').view.zoom;
    return [geometry.scale, position.row, position.column, geometry.x];
}"""
PINCH = """() => {
    const { canvas } = document.querySelector('.clearhead').view.zoom;
    canvas.setPointerCapture = () => {};
    const box = canvas.getBoundingClientRect();
    const send = (name, id, x) => canvas.dispatchEvent(new PointerEvent(name, { pointerId: id,
        pointerType: 'touch', clientX: box.left + x, clientY: box.top + 200, bubbles: true }));
    send('pointerdown', 1, 300); send('pointerdown', 2, 500);
    send('pointermove', 1, 350); send('pointermove', 2, 450);
    send('pointerup', 1, 350); send('pointerup', 2, 450);
}"""


def test_keys_search_and_the_strongest(tmp_path: Path, told: Told) -> None:
    weights = told.weights["L1"][1].copy()
    weights[:, 0] = 0  # hidden
    row, column = np.unravel_index(weights.argmax(), weights.shape)
    with page_at(tmp_path, html_page(picture_of(told, 1))) as page:
        opened(page)
        headline = page.locator("h1").inner_text()
        assert f"{weights.max():.2f} of its attention in head L1H1" in headline
        page.locator(".zoom-strongest button").first.click()
        soon(page.locator(".zoom-number"), f"{weights.max():.4f}")
        texts = under(page)[1]
        assert f"query {row}" in texts and f"key {column}" in texts
        page.locator(".zoom-map").focus()
        page.keyboard.press("ArrowLeft")
        beside = f"{weight_at(told, int(row), int(column) - 1):.4f}"
        soon(page.locator(".zoom-number"), beside)
        page.keyboard.press("0")
        soon(page.locator(".zoom-status"), "The whole map")
        page.locator(".zoom-search").fill("unhappy kids")
        assert "6 places" in page.locator(".zoom-toolbar").inner_text()
        page.locator(".zoom-search").press("Enter")
        page.locator(".zoom-search").press("Enter")
        assert "2 of 6" in page.locator(".zoom-toolbar").inner_text()
        found = re.compile(r"query 13\s.*the.*The unhappy kids", re.DOTALL)
        soon(page.locator(".zoom-texts"), found)
        page.locator(".zoom-search").fill("zebra")
        assert "not in this text" in page.locator(".zoom-toolbar").inner_text()


def test_what_does_not_fit_is_told(tmp_path: Path, told: Told) -> None:
    picture = picture_of(told, 1)
    assert isinstance(picture.zoom, ZoomedMap)
    html = map_page.map_fragment(picture, picture.zoom, budget=4_000)
    with page_at(tmp_path, html) as page:
        opened(page)
        assert "Single weights are in this file for" in page.locator("footer").inner_text()
        tiles = page.evaluate(READ)
        missing = next(
            (row, column) for level, row, column, _, one in tiles if level == 0 and one is None
        )
        assert next(one for level, _, _, _, one in tiles if level == 3) is not None
        row, column = missing[0] * 16 + 8, missing[1] * 16 + 3
        page.evaluate(f"document.querySelector('.clearhead').view.zoom.go({row}, {column}, 40)")
        soon(page.locator(".zoom-status"), "not in this file")
        soon(page.locator(".zoom-under"), "the largest of")


UNNAMED = """[...document.querySelectorAll('button, input, select, canvas')].filter((one) =>
    !(one.getAttribute('aria-label') || one.closest('label') || one.textContent.trim())).length"""


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, told: Told, width: int) -> None:
    with page_at(tmp_path, html_page(picture_of(told, 1)), width=width, dark=width == 400) as page:
        opened(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        unnamed = page.evaluate(UNNAMED)
        assert unnamed == 0


SERVED = """
const root = document.querySelector('.clearhead');
const text = (name) => JSON.parse(root.querySelector(`[data-${name}]`).textContent);
const served = text('served');
let turn = 0;
const asked = [];
const source = new ServedTiles(served.info, {
    tile: async (level, row, column) => {
        asked.push([level, row, column]);
        return bytesOfBase64(served.turns[turn][`${level}/${row}/${column}`]).buffer;
    },
    axis: async () => served.axis,
    strongest: async () => served.strongest,
});
const onpoint = (cell, spoken) => panel.point(cell, spoken);
const zoom = new DeepZoom(source, { root, onpoint, onpaint: () => panel.tell() });
const panel = new ZoomPanel(zoom);
root.append(panel.controls, panel.status, zoom.element, panel.legend, panel.element);
const small = new SmallMaps(root, (head) => (root.dataset.chosen = head));
for (const one of served.small) small.set(one);
root.append(small.element);
root.test = { zoom, asked, next: () => { turn += 1; zoom.refresh(); } };
zoom.ready.then(() => (root.dataset.ready = 'true'));
"""


def test_the_same_widget_shows_served_tiles(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyramid, "QUICK", 0)
    monkeypatch.setattr(pyramid, "STEP_WEIGHTS", 16 * 72)  # sixteen rows of the text in a step
    view = told.look.seen["L1H1"]
    tiles = Tiles(view, hidden=[0])
    turns = [served(tiles)]
    list(tiles.build())
    turns.append(served(tiles))
    info = {
        "rows": 72, "columns": 72, "levels": tiles.levels, "tile": 16, "pool": "max",
        "most": [1.0] * tiles.levels, "hidden": [0], "head": "L1H1", "measure": "weight",
    }  # fmt: skip
    strongest = [vars(one) for one in tiles.strongest(5)]
    axis = axis_json(view.rows.passage, 72, "rows")
    small = [
        {"head": one.head, "rows": one.numbers.shape[0], "columns": one.numbers.shape[1],
         "numbers": one.numbers.flatten().tolist(), "counted": one.counted}
        for one in small_maps([told.look.seen["L1"]], size=9)
    ]  # fmt: skip
    data = {"info": info, "axis": axis, "turns": turns, "strongest": strongest, "small": small}
    script = program(SCRIPTS).removesuffix("})();") + SERVED + "})();"
    html = (
        f"<style>{style('view.css')}{style('zoom/zoom.css', colours=False)}</style>"
        f'<div class="clearhead"><script type="application/json" data-served>{script_json(data)}'
        f"</script></div><script>{script}</script>"
    )
    with page_at(tmp_path, html) as page:
        opened(page)
        top = tiles.levels - 1
        number = "(p) => document.querySelector('.clearhead').test.zoom.number(p)"
        assert page.evaluate(number, {"level": top, "row": 8, "column": 3}) == -0.5
        page.evaluate("document.querySelector('.clearhead').test.next()")
        page.wait_for_function(f"({number})({{level: {top}, row: 8, column: 3}}) > 0")
        page.locator(".zoom-strongest button").nth(2).click()
        third = tiles.strongest(3)[2]
        soon(page.locator(".zoom-number"), f"{third.weight:.4f}")
        exact = page.evaluate(number, {"level": 0, "row": third.row, "column": third.column})
        assert exact == pytest.approx(third.weight, abs=1e-9)
        assert third.weight == pytest.approx(weight_at(told, third.row, third.column), abs=1e-6)
        assert page.locator(".zoom-gallery canvas").count() == HEADS
        page.locator(".zoom-gallery button").nth(1).click()
        assert page.locator(".clearhead").get_attribute("data-chosen") == "L1H1"
        assert "every query" in page.locator(".zoom-gallery button").nth(1).get_attribute("title")


def served(tiles: Tiles) -> dict[str, str]:
    found = {}
    for level in range(tiles.levels):
        down, across = tiles.grid.tiles(level)
        for row in range(down):
            for column in range(across):
                data = exact_bytes(tiles.tile(level, row, column).numbers)
                found[f"{level}/{row}/{column}"] = base64.b64encode(data).decode()
    return found


def test_what_is_shown_can_be_saved(tmp_path: Path, told: Told) -> None:
    with page_at(tmp_path, html_page(picture_of(told, 1))) as page:
        opened(page)
        saved = {}
        for name, scale in (("whole", 1), ("near", 40)):
            page.evaluate(f"document.querySelector('.clearhead').view.zoom.go(40, 38, {scale})")
            page.wait_for_function(DRAWN)
            with page.expect_download() as waiting:
                page.get_by_role("button", name="SVG").click()
            saved[name] = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert saved["near"].startswith("<svg") and saved["near"].count("<rect") > 100
        shown = f"{weight_at(told, 40, 38) + 5e-13:.2f}".removeprefix("0")
        assert weight_at(told, 40, 38) < 0.005 or f">{shown}<" in saved["near"]
        assert ">kids<" in saved["near"] and ">39<" in saved["near"]
        with page.expect_download() as waiting:
            page.get_by_role("button", name="PNG").click()
        assert Path(waiting.value.path()).read_bytes().startswith(b"\x89PNG")
