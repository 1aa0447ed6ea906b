"""Predictions in a page: what the file holds, and what a browser makes of it."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.generation import sampling
from clearhead.generation.settings import Settings
from clearhead.text.characters import CharacterTokenizer
from clearhead.views.page import predictions as page_predictions
from clearhead.views.page.blocks import Blocks
from clearhead.views.page.predictions import (
    TEMPERATURES,
    add_predictions,
    byte_planes,
    kept_logits,
    named,
)
from clearhead.views.shown import ShownLook
from tests.shared.chromium import page_at
from tests.shared.explained_models import random_decoder
from tests.shared.made_looks import made_look
from tests.shared.page_blocks import unpacked
from tests.shared.tiny_models import Tiny

pytestmark = pytest.mark.usefixtures("one_thread")
LETTERS = CharacterTokenizer("".join(map(chr, [32, *range(97, 123), *range(0x100, 0x100 + 280)])))
TEXT = "the cat sat"  # spaces are tokens of their own here
STOPS = [1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, None]  # of the slider

SET = """([name, value]) => {
  const slider = document.querySelector(`[data-setting="${name}"]`);
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""
READ = """([settings, seed]) => {
  const set = (element, value) => {
    element.value = value;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  };
  for (const [name, value] of Object.entries(settings)) set(document.querySelector(`[data-setting="${name}"]`), value);
  set(document.querySelector(".seed"), seed);
  return {
    shares: [...document.querySelectorAll(".distribution tr[data-rank]")].map((row) => Number(row.dataset.share)),
    rest: Number(document.querySelector(".distribution tr.rest")?.dataset.share ?? 0),
    unknown: document.querySelector(".unknown").textContent,
    drawn: document.querySelector(".draw").dataset.place,
  };
}"""  # noqa: E501


@functools.cache
def letters() -> Loaded:
    """A decoder with 307 tokens, and some rows of its vocabulary beyond its tokenizer's."""
    made = random_decoder(3, vocab=LETTERS.size + 5, layers=2)
    return replace(made, tokenizer=LETTERS)


@functools.cache
def look_of_letters() -> ShownLook:
    return ch.look(letters(), TEXT)


def own_logits(position: int) -> Tensor:
    """As generate samples from them: float32, without rows that the tokenizer does not have."""
    ids = torch.tensor([[token.id for token in LETTERS.tokens(TEXT)]])
    with torch.no_grad():
        logits: Tensor = letters().model(ids)[0, position, : LETTERS.size]
    return logits.float()


def ready(page: Any) -> None:
    for part in ("", ".predictions", ".lens"):
        page.wait_for_selector(f"{part}[data-ready]")


def ranked(logits: Tensor) -> list[int]:
    return sorted(range(len(logits)), key=lambda id: (-float(logits[id]), id))[:200]


def wanted(logits: Tensor, stops: tuple[Any, ...]) -> Tensor:
    temperature, top_k, top_p, min_p = stops
    settings = Settings(
        temperature=temperature, top_k=top_k, top_p=None if top_p == 1 else top_p, min_p=min_p
    )
    if settings.greedy:
        filtered = torch.full_like(logits, -torch.inf)[None]
        filtered[0, int(logits.argmax())] = 0.0
    else:
        filtered = settings.filtered(logits[None])
    return filtered.double().softmax(-1)[0]


@pytest.mark.browser
def test_sampling_in_the_page_is_that_of_generate(tmp_path: Path) -> None:
    """Every slider against the Python sampler, over many settings; and the draw of each."""
    look = look_of_letters()
    logits = own_logits(len(LETTERS.tokens(TEXT)) - 1)
    grid = list(itertools.product(
        (0.0, 0.1, 0.5, 0.7, 1.0, 1.3, 2.0), (None, 200, 40, 5, 1), (1, 0.98, 0.9, 0.37, 0.01),
        (0.0, 0.01, 0.08, 0.5, 1.0),
    ))  # fmt: skip
    tried = [*random.Random(3).sample(grid, 70), *[(2.0, None, 1, 0.0)] * 12]
    asked = [
        [{"temperature": t, "topK": STOPS.index(k), "topP": p, "minP": m}, seed]
        for seed, (t, k, p, m) in enumerate(tried)
    ]
    with page_at(tmp_path, look.html()) as page:
        ready(page)
        for _ in range(5):
            page.keyboard.press("ArrowRight")  # to the last word, wherever the page began
        assert page.locator(".predictions h2").inner_text() == "What comes after “sat”"
        page.get_by_role("button", name="Show all 200").click()
        told = page.evaluate(f"(all) => all.map({READ})", asked)
    seen = [compared(one, seed, logits, tried[seed]) for seed, one in enumerate(told)]
    assert {"exact", "unknown", "of the rest"} == set(seen) and seen.count("unknown") < 25


def compared(told: Any, seed: int, logits: Tensor, stops: tuple[Any, ...]) -> str:
    """The page's numbers for one setting against the sampler's; which case it was."""
    kept, shares = ranked(logits), wanted(logits, stops)
    others = sorted(set(range(len(shares))) - set(kept))
    rest = float(shares[others].sum())
    if told["unknown"]:
        assert 0 < int((shares[others] > 0).sum()) < len(others), stops  # some, but not all
        assert told["drawn"] == ""
        return "unknown"
    assert told["shares"] == pytest.approx(shares[kept].tolist(), abs=1e-9), stops
    assert told["rest"] == pytest.approx(rest, abs=1e-9), stops
    uniform = random.Random(f"{seed}/0").random()
    if rest == 0:
        (token,) = sampling.sample(shares.log()[None], [uniform])
    else:  # those that are not in the file come last
        order = [*sorted(kept), -1]
        ends = np.cumsum([*(float(shares[id]) for id in order[:-1]), rest])
        token = order[int(np.searchsorted(ends, uniform * ends[-1], side="right"))]
    assert int(told["drawn"]) == (-1 if token == -1 else kept.index(token)), stops
    return "of the rest" if token == -1 else "exact"


@pytest.mark.browser
def test_the_draw_is_the_first_token_of_generate(tmp_path: Path) -> None:
    logits = own_logits(len(LETTERS.tokens(TEXT)) - 1)
    with page_at(tmp_path, look_of_letters().html()) as page:
        ready(page)
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        stops = {"temperature": 0.8, "topK": STOPS.index(20), "topP": 0.9, "minP": 0}
        for seed in (0, 1, 255):
            told = page.evaluate(READ, [stops, seed])
            options: dict[str, Any] = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": seed}
            first = next(ch.generate(letters(), TEXT, max_tokens=1, engine=False, **options))
            assert ranked(logits)[int(told["drawn"])] == first.token
            assert f"as generate does with seed {seed}" in page.locator(".draw").inner_text()


@pytest.mark.browser
def test_the_panel_follows_pointer_and_keyboard_and_stays_with_a_click(tmp_path: Path) -> None:
    look = look_of_letters()
    with page_at(tmp_path, look.html()) as page:
        ready(page)
        title, came = page.locator(".predictions h2"), page.locator(".came").first
        page.locator('.word[data-place="0"]').hover()
        assert title.inner_text() == "What comes after “the”"
        found = look.predictions("the")
        assert found.came is not None and found.surprise is not None
        assert f"rank {found.came.rank} of {LETTERS.size}" in came.inner_text()
        assert f"surprise {found.surprise:.2f} bits" in came.inner_text()
        first = page.locator(".distribution tr[data-rank='1']")
        assert float(first.get_attribute("data-own")) == pytest.approx(
            found.likeliest[0].probability, abs=1e-9
        )
        page.locator('.word[data-place="2"]').click()
        page.mouse.move(5, 5)
        assert title.inner_text() == "What comes after “cat”"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert title.inner_text() == "What comes after “sat”"
        assert came.inner_text() == "The text ends here: nothing came."
        parts = page.get_by_role("group", name="Tokens of the word").get_by_role("button")
        assert parts.all_inner_texts() == ["s", "a", "t"]
        parts.nth(0).press("Enter")
        assert title.inner_text() == "What comes after “s”" and "a came" in came.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(400, True), (1280, False)])
def test_sliders_have_names_and_keys_at_every_width(tmp_path: Path, width: int, dark: bool) -> None:
    with page_at(tmp_path, look_of_letters().html(), width=width, dark=dark) as page:
        ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        word = page.locator(".word.current").inner_text()
        for name, key, value in (
            ("Temperature", "ArrowLeft", "0.9"), ("Top-k", "ArrowLeft", "200"),
            ("Top-p", "ArrowLeft", "0.99"), ("Min-p", "ArrowRight", "0.01"),
        ):  # fmt: skip
            slider = page.get_by_role("slider", name=name)
            assert slider.get_attribute("aria-valuetext") in ("off", "1.0")
            slider.press(key)
            assert slider.get_attribute("aria-valuetext") == value
        assert page.locator(".word.current").inner_text() == word
        assert page.locator(".predictions.changed").count() == 1
        page.get_by_role("button", name="Reset").click()
        assert page.locator(".predictions.changed").count() == 0
        table = page.get_by_role("table", name="Likeliest tokens")
        assert table.get_by_role("columnheader").all_inner_texts() == ["token", "model", "sampled"]
        assert table.get_by_role("rowheader").count() == 12  # ten tokens, and two sums


@pytest.mark.browser
def test_more_than_the_file_holds_is_said_and_not_pretended(tmp_path: Path) -> None:
    with page_at(tmp_path, look_of_letters().html()) as page:
        ready(page)
        said = page.locator(".unknown")
        assert not said.is_visible()
        page.evaluate(SET, ["temperature", 2])
        page.evaluate(SET, ["topP", 0.99])
        assert "Top-p 0.99 keeps more tokens than this file holds" in said.inner_text()
        assert page.locator(".draw").inner_text() == "No draw: see above."
        page.evaluate(SET, ["topK", STOPS.index(50)])
        assert not said.is_visible()


@pytest.mark.browser
def test_written_tokens_of_an_encoder_decoder(tmp_path: Path) -> None:
    look = ch.look("dates", "3rd of March 2021")
    with page_at(tmp_path, look.html()) as page:
        ready(page)
        page.locator('.word[role="button"][data-place="2"]').hover()  # 03, the month
        assert page.locator(".predictions h2").inner_text() == "What could be written at “3”"
        parts = page.get_by_role("group", name="Tokens of the word").get_by_role("button")
        assert parts.all_inner_texts() == ["0", "3"]
        assert page.locator(".came").first.inner_text().startswith("3 came: probability")
        assert "all 65 tokens" in page.locator(".bars-side").inner_text()
        assert page.locator(".distribution tr.rest").count() == 0


@pytest.mark.browser
def test_places_of_a_masked_language_model(tmp_path: Path, tiny: Callable[[str], Tiny]) -> None:
    loaded = replace(tiny("bert-masked").loaded, tokenizer=LETTERS)
    with page_at(tmp_path, ch.look(loaded, "a b").html()) as page:
        ready(page)
        page.keyboard.press("ArrowRight")
        title = page.locator(".predictions h2").inner_text()
        assert title == "What fits at “b”"
        assert page.locator(".came").first.inner_text().startswith("b stands there: probability")


@pytest.mark.browser
def test_the_lens_in_the_page(tmp_path: Path) -> None:
    look = look_of_letters()
    lens = look.lens()
    with page_at(tmp_path, look.html()) as page:
        ready(page)
        rows = page.locator(".lens tbody tr")
        assert rows.count() == 2
        cells = rows.nth(1).locator("td")
        assert cells.all_inner_texts() == [named(text) for text in lens.tokens[1]]
        shares = [float(cell.get_attribute("data-probability")) for cell in cells.all()]
        assert shares == [round(float(share), 4) for share in lens.insight.probabilities[1]]
        page.locator(".lens").get_by_role("button", name="cat").click()
        assert page.locator(".word.current").inner_text() == "cat"
        said = page.locator(".lens .said").inner_text()
        assert said.startswith("At “cat” the final answer")
        assert f"is the likeliest from L{lens.appears[2]} on" in said


def test_the_file_holds_the_logits_exactly() -> None:
    blocks = Blocks()
    meta = add_predictions(blocks, look_of_letters().insight)
    assert meta is not None
    positions = len(LETTERS.tokens(TEXT))
    assert (meta["positions"], meta["kept"], meta["vocab"]) == (positions, 200, LETTERS.size)
    data = unpacked(blocks.by_name["predictions"])[: positions * 200 * 4]
    held = np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<f4").reshape(-1, 200)
    for position in range(positions):
        logits = own_logits(position)
        assert held[position] == pytest.approx(logits[ranked(logits)].numpy(), rel=1e-5)
    assert "holds the 200 likeliest tokens" in meta["note"]


def test_sums_at_every_temperature_are_those_of_each_alone() -> None:
    logits = 9 * torch.randn(3, 307)
    kept = kept_logits(logits, [5, -1, 7], 11)
    shifted = logits.scatter(1, kept.ids, -torch.inf) - logits.amax(1, keepdim=True)
    alone = [(shifted / one).double().exp().sum(1) for one in TEMPERATURES]
    torch.testing.assert_close(kept.rests, torch.stack(alone, 1), rtol=1e-6, atol=0)
    others = [place for place, one in enumerate(TEMPERATURES) if one != 1.0]  # 1 is not shifted
    exact = torch.stack(alone, 1)[:, others]
    torch.testing.assert_close(kept.rests[:, others], exact, rtol=1e-13, atol=0)


def test_sums_over_the_others_at_each_temperature() -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 31) * 4
    kept = kept_logits(logits, [5, -1, 7], 11, (0.3, 1.0, 2.0))
    for row in range(3):
        rest = [id for id in range(31) if id not in kept.ids[row].tolist()]
        assert float(kept.after[row]) == max(float(logits[row, id]) for id in rest)
        for place, temperature in enumerate((0.3, 1.0, 2.0)):
            shares = (logits[row].double() / temperature).softmax(-1)
            wanted = float(shares[rest].sum() / shares.max())
            assert float(kept.rests[row, place]) == pytest.approx(wanted, rel=1e-5)
    assert int(kept.ranks[0]) == 1 + int((logits[0] > logits[0, 5]).sum())


def test_equal_logits_are_kept_in_the_order_of_their_ids() -> None:
    kept = kept_logits(torch.zeros(2, 29), [1, 2], 7, (1.0,))
    assert kept.ids.tolist() == [list(range(7))] * 2 and kept.after.tolist() == [0.0, 0.0]
    assert kept.rests[:, 0].tolist() == [22.0, 22.0]


def test_long_texts_keep_less_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_predictions, "EXPONENTIALS", 1e3)
    monkeypatch.setattr(page_predictions, "LENS_PRODUCTS", 1.0)
    look = ch.look(letters(), "a b c d e f g h i j k l", word="b")
    meta = add_predictions(Blocks(), look.insight, budget=6_000)
    assert meta is not None and meta["kept"] == int(6_000 / page_predictions.CHARACTERS / 23)
    assert meta["temperatures"] == [1.0]
    assert "leaves no room for 200" in meta["note"] and "temperature 1 alone" in meta["note"]
    blocks = Blocks()
    add_predictions(blocks, look.insight)
    assert b'"cut": true' in unpacked(blocks.by_name["lens"])


def test_looks_without_predictions() -> None:
    assert add_predictions(Blocks(), made_look()) is None
    bad = random_decoder(4, vocab=LETTERS.size, tied=False)
    assert isinstance(bad.model, ch.Decoder) and bad.model.head.weight is not None
    bad.model.head.weight.fill_(math.nan)
    meta = add_predictions(Blocks(), ch.look(replace(bad, tokenizer=LETTERS), "ab").insight)
    assert meta is not None and "logits are NaN or infinite" in meta["missing"]


def test_names_and_planes() -> None:
    assert [named(text) for text in (" a", "a", " ", "\n", " \x1b")] == ["␣a", "a", "␣", "⏎", "␣␛"]
    assert byte_planes(np.array([1, 258], dtype="<u2")) == bytes([1, 2, 0, 1])
