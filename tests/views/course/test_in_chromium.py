"""The course as people use it: numbers typed into fields are computed as Python computes them."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.explain.course.packed import unpacked
from clearhead.explain.course.tokens import tokenizer_of
from clearhead.explain.roles.intervals import binomial_tail, wilson_interval
from clearhead.models.presets import preset
from clearhead.views.course.chapter import Chapter
from clearhead.views.course.chapters import CHAPTERS, action
from clearhead.views.course.html import course_page
from clearhead.views.course.real_numbers import real_numbers
from tests.shared.chromium import page_at
from tests.views.course.test_html import ran

pytestmark = pytest.mark.browser

ROUNDS = 12  # random inputs of each chapter
BY_ID = {chapter.id: chapter for chapter in CHAPTERS}
SET = """([id, values]) => {
  const root = document.getElementById(id);
  for (const [name, value] of Object.entries(values)) {
    const field = root.querySelector(`[data-field="${name}"]`);
    if (!field) throw new Error(`no field ${name}`);
    field.value = value;
    field.dispatchEvent(new Event("input"));
  }
}"""
# What is drawn beyond the right edge of its figure or panel; what scrolls by itself is left out.
OUTSIDE = """() => [...document.querySelectorAll("figure, .panel")].flatMap((box) => {
  const right = box.getBoundingClientRect().right + 1;
  return [...box.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > right
    && !one.closest(".brackets") && !one.closest(".unseen")).map((one) =>
    `${box.closest("section").id}: ${one.className} ${one.textContent.slice(0, 40)}`);
})"""
# Every box of every figure with each text: what is wrong in the figure then, and the box's word.
ODD = """(texts) => [...document.querySelectorAll("figure input.box")].flatMap((box) => {
  const figure = box.closest("figure");
  const type = (text) => {
    box.value = text;
    box.dispatchEvent(new Event("input"));
  };
  const before = box.value;
  const found = texts.map((text) => {
    type(text);
    const shown = figure.querySelector(".figure-body").textContent
      + figure.querySelector(".conclusion").textContent;
    return {
      field: `${figure.closest("section").id} ${box.dataset.field}`, text,
      wrong: shown.match(/NaN|undefined|Infinity/),
      wide: document.documentElement.scrollWidth > innerWidth,
      used: box.getAttribute("aria-invalid") !== "true",
      said: figure.querySelector(".said").textContent,
    };
  });
  type(before);
  return found;
})"""
READ = """(id) => Object.fromEntries([...document.querySelectorAll(`#${id} [data-name]`)].map(
  (one) => [one.dataset.name, one.dataset.value]))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with page_at(tmp_path_factory.mktemp("course"), course_page()) as found:
        found.wait_for_selector(".course[data-ready]")
        yield found


def at(page: Any, id: str) -> Any:
    """The chapter, with its figure ready."""
    page.evaluate("(id) => { location.hash = ''; location.hash = id; }", id)
    page.wait_for_selector(f"#{id} figure[data-ready]")
    return page.locator(f"#{id}")


def typed(page: Any, id: str, values: dict[str, float]) -> dict[str, float]:
    page.evaluate(SET, [id, {name: repr(value) for name, value in values.items()}])
    return read(page, id)


def read(page: Any, id: str) -> dict[str, float]:
    found = page.evaluate(READ, id)
    return {name: float(value.replace("Infinity", "inf")) for name, value in found.items()}


def fields(name: str, matrix: Tensor) -> dict[str, float]:
    return {
        f"{name}-{r}-{c}": value
        for r, row in enumerate(matrix.tolist())
        for c, value in enumerate(row)
    }


def randoms(*shape: int) -> Tensor:
    """Numbers such as people type: up to three decimals."""
    return (torch.randn(*shape, dtype=torch.float64) * 2).round(decimals=3)


def agree(found: dict[str, float], name: str, wanted: Any, allowed: float = 1e-12) -> None:
    """Every number of a tensor is shown, under its name and its places."""
    array = np.asarray(wanted, dtype=np.float64)
    for place in np.ndindex(array.shape):
        key = "-".join([name, *map(str, place)])
        number = float(array[place])
        close = math.isclose(found[key], number, rel_tol=allowed, abs_tol=allowed)
        assert close or found[key] == number, (key, found[key], number)


@pytest.mark.parametrize(
    "chapter", [one for one in CHAPTERS if not one.download], ids=lambda one: one.id
)
def test_the_code_computes_what_the_figure_shows(page: Any, chapter: Chapter) -> None:
    at(page, chapter.id)
    program, found = ran(chapter), read(page, chapter.id)
    for expression, name in chapter.figure.same:
        agree(found, name, eval(expression, program))


@pytest.mark.download
@pytest.mark.parametrize(
    "chapter", [one for one in CHAPTERS if one.download], ids=lambda one: one.id
)
def test_the_code_of_a_real_model_computes_what_the_figure_shows(
    page: Any, chapter: Chapter
) -> None:
    at(page, chapter.id)
    program, found = ran(chapter), read(page, chapter.id)
    for expression, name in chapter.figure.same:
        agree(found, name, eval(expression, program), 5e-3)


def test_one_query(page: Any) -> None:
    at(page, "one-query")
    for _ in range(ROUNDS):
        keys, query = randoms(4, 3), randoms(1, 3)
        found = typed(page, "one-query", fields("keys", keys) | fields("query", query))
        steps = ch.attention_steps(query, keys, keys, scale=1.0)
        for name in ("scores", "weights", "weighted", "output"):
            agree(found, name, getattr(steps, name))
        agree(found, "powers", steps.scores[0].exp(), 1e-11)


def test_batch(page: Any) -> None:
    at(page, "batch")
    for _ in range(ROUNDS):
        keys, queries = randoms(3, 4, 3), randoms(3, 3)
        values = fields("queries", queries)
        for row in range(3):
            values |= fields(f"keys-{row}", keys[row])
        found = typed(page, "batch", values)
        agree(found, "output", ch.selfish_attention(keys, queries))


def waves(count: int, width: int) -> Tensor:
    places = torch.arange(count, dtype=torch.float64)[:, None]
    angle = places / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


@pytest.mark.parametrize("order", ["1 2 3", "2 1 3", "3 2 1", "3 1 2"])
@pytest.mark.parametrize("placed", [False, True])
def test_positions(page: Any, order: str, placed: bool) -> None:
    chapter = at(page, "positions")
    chapter.locator(f'[data-option="{order}"]').click()
    chapter.locator('input[data-field="p"]').set_checked(placed)
    places = [int(one) - 1 for one in order.split()]
    for _ in range(3):
        c = randoms(3, 4)
        found = typed(page, "positions", fields("c", c))
        x = c[places] + (waves(3, 4) if placed else 0)
        output = ch.attention_steps(x, x, x).output
        by_word = torch.empty_like(output)
        by_word[places] = output
        agree(found, "output", by_word)
    said = chapter.locator(".conclusion").inner_text()
    if order != "1 2 3":
        assert ("and the words notice" in said) == placed


@pytest.mark.parametrize("f", ["f(x) = x", "f(x) = max(0, x)", "f(x) = tanh x"])
def test_matrices(page: Any, f: str) -> None:
    chapter = at(page, "matrices")
    chapter.locator(f'[data-option="{f}"]').click()
    function = {"x": lambda x: x, ")": torch.relu, "tanh x": torch.tanh}
    apply = function["tanh x" if "tanh" in f else ")" if "max" in f else "x"]
    for _ in range(4):
        c, query, key, value = randoms(3, 4), randoms(4, 4), randoms(4, 4), randoms(4, 4)
        values = fields("c", c)
        for name, matrix in (("query", query), ("key", key), ("value", value)):
            values |= fields(name, matrix)
        found = typed(page, "matrices", values)
        x = c + waves(3, 4)
        for letter, matrix in (("q", query), ("k", key), ("v", value)):
            agree(found, letter, apply(x @ matrix))


def test_the_whole_table(page: Any) -> None:
    at(page, "table")
    matrices = (action.TO_QUERY, action.TO_KEY, action.TO_VALUE)
    to = [torch.tensor(one, dtype=torch.float64) for one in matrices]
    for _ in range(ROUNDS):
        c = randoms(3, 4)
        found = typed(page, "table", fields("c", c))
        q, k, v = ((c + waves(3, 4)) @ matrix for matrix in to)
        steps = ch.attention_steps(q, k, v)
        for name in ("scores", "scaled", "weights", "weighted", "output"):
            agree(found, name, getattr(steps, name))
        agree(found, "q", q)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("step", [1, 3, 4])
def test_mask(page: Any, causal: bool, step: int) -> None:
    chapter = at(page, "mask")
    chapter.locator('input[data-field="mask"]').set_checked(causal)
    for _ in range(3):
        x = randoms(4, 2)
        found = typed(page, "mask", {"step": step, **fields("x", x)})
        some = ch.attention_steps(x[:step], x[:step], x[:step], causal=causal)
        whole = ch.attention_steps(x, x, x, causal=causal)
        agree(found, "weights", some.weights)
        agree(found, "output", some.output)
        agree(found, "all", whole.output[:step])
        if causal:
            assert "the very same numbers" in chapter.locator(".conclusion").inner_text()
    chapter.locator('input[data-field="mask"]').set_checked(True)


def made(rows: int, columns: int, seed: int) -> Tensor:
    """The matrices of the figure: small whole numbers of a congruence."""
    state, numbers = (seed * 7919 + 17) % 65536, []
    for _ in range(rows * columns):
        state = (state * 25173 + 13849) % 65536
        numbers.append(state // 256 % 5 - 2)
    return torch.tensor(numbers, dtype=torch.float64).view(rows, columns)


def test_many_heads(page: Any) -> None:
    at(page, "heads")
    for number in range(ROUNDS):
        heads, m, wide = (
            random.Random(number).choices(range(1, 9), k=1)[0],
            1 + number % 4,
            1 + number % 3,
        )
        x = randoms(3, 4)
        found = typed(page, "heads", {"T": heads, "m": m, "l": wide, "head": 0, **fields("x", x)})
        outputs = [
            ch.attention_steps(
                x @ made(4, m, 10 * t), x @ made(4, m, 10 * t + 1), x @ made(4, wide, 10 * t + 2)
            )
            for t in range(heads)
        ]
        joined = torch.cat([one.output for one in outputs], dim=1)
        agree(found, "Z", joined)
        agree(found, "final", joined @ made(heads * wide, 4, 99), 1e-11)
        agree(found, "weights", outputs[0].weights)


def test_the_count_of_parameters(page: Any) -> None:
    at(page, "heads")
    stops = {"d": [4, 64, 128, 256, 512, 768, 1024, 4096], "T": [1, 2, 4, 8, 12, 16, 32],
             "m": [2, 16, 32, 64, 96, 128], "l": [2, 16, 32, 64, 96, 128]}  # fmt: skip
    for number in range(ROUNDS):
        places = {
            name: random.Random(f"{number}{name}").randrange(len(stops[name])) for name in stops
        }
        found = typed(page, "heads", {f"big-{name}": place for name, place in places.items()})
        d, heads, m, wide = (stops[name][places[name]] for name in "dTml")
        with torch.device("meta"):
            layer = ch.MultiHeadAttention(d, heads, key_dim=m, value_dim=wide)
        assert found["count"] == sum(one.numel() for one in layer.parameters())


@pytest.mark.parametrize("date", ["3rd of March 2021", "12 July 1999", "Dec 31, 1987"])
def test_dates_is_the_model_itself(page: Any, date: str) -> None:
    chapter = at(page, "cross-attention")
    chapter.locator('input[data-field="text"]').fill(date)
    loaded = ch.load("dates")
    model, tokenizer = loaded.model.double(), tokenizer_of(loaded)
    read_ids = torch.tensor([tokenizer.encode(date)])
    written = chapter.locator(".written b").inner_text()
    assert written == ch.look("dates", date).text
    ids = torch.tensor([[1, *tokenizer.encode(written, special=False)]])
    with ch.watch(model) as seen, torch.no_grad():
        logits = model(read_ids, ids)
    for head in ("C0H0", "C0H1"):
        chapter.locator(f'[data-option="{head}"]').click()
        found = read(page, "cross-attention")
        record, place = seen[head].record, int(head[-1])
        key = record.key[0, place]
        agree(found, "cross", ch.attention_steps(record.query[0, place], key, key).weights, 1e-9)
    agree(found, "share", logits[0].softmax(dim=-1).amax(dim=-1), 1e-9)


def test_blocks(page: Any) -> None:
    chapter = at(page, "blocks")
    for _ in range(ROUNDS):
        x, layer = randoms(1, 4), randoms(1, 4)
        found = typed(page, "blocks", fields("x", x) | fields("layer", layer))
        normed = torch.nn.functional.layer_norm(x + layer, (4,))
        agree(found, "norm", normed[0], 1e-11)
    for name in ("base", "big"):
        chapter.locator(f'[data-option="{name}"]').click()
        with torch.device("meta"):
            model = ch.EncoderDecoder(preset(f"transformer-{name}"))
        count = sum(one.numel() for one in model.parameters())
        assert read(page, "blocks")["total"] == count
        assert f"{count:,}" in chapter.locator(".conclusion").inner_text()
    chapter.locator('[data-option="your own"]').click()
    found = typed(page, "blocks", {"d": 0, "hidden": 1, "heads": 2, "layers": 3, "vocab": 1})
    with torch.device("meta"):
        small = preset("transformer-base", model=64, feed_forward=512, heads=4, layers=3,
                       encoder_layers=3, vocab=8000)  # fmt: skip
        own = ch.EncoderDecoder(small)
    assert found["total"] == sum(one.numel() for one in own.parameters())


def test_sampling(page: Any) -> None:
    at(page, "sampling")
    numbers = real_numbers("next_token")
    logits = torch.from_numpy(unpacked(numbers["logits"]).astype(np.float64))
    ids = numbers["ids"][:10]
    for temperature, top_k, top_p in [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 50, 1.0), (1.3, 5, 0.6),
                                      (0.7, 0, 0.35)]:  # fmt: skip
        stops = [1, 2, 3, 5, 10, 50, 200, 0]
        found = typed(
            page, "sampling", {"temperature": temperature, "k": stops.index(top_k), "p": top_p}
        )
        shares = (logits / temperature).softmax(dim=0)
        order = shares.argsort(descending=True, stable=True)
        kept = torch.zeros_like(shares)
        kept[order[: top_k or None]] = shares[order[: top_k or None]]
        kept /= kept.sum()
        before = kept[order].cumsum(dim=0) - kept[order]
        kept[order[before >= top_p]] = 0 if top_p < 1 else kept[order[before >= top_p]]
        kept /= kept.sum()
        agree(found, "share", kept[ids], 1e-11)
        assert kept[int(found["drawn"])] > 0
    found = typed(page, "sampling", {"temperature": 1, "k": 7, "p": 1, "logit-3-0": 20.5})
    logits[ids[3]] = 20.5
    agree(found, "share", logits.softmax(dim=0)[ids], 1e-11)


def test_the_cache(page: Any) -> None:
    at(page, "cache")
    widths = [4, 64, 256, 576, 1024, 4096]
    for number in range(ROUNDS):
        chance = random.Random(number)
        prompt, written, place = chance.randint(1, 6), chance.randint(1, 8), chance.randrange(6)
        step, d = chance.randint(1, written), widths[place]
        found = typed(
            page, "cache", {"prompt": prompt, "written": written, "step": step, "d": place}
        )
        for cached in (0, 1):
            projected = multiplied = was_read = 0
            for one in range(written):  # counted token by token
                tokens = prompt + one
                rows = tokens if not cached or one == 0 else 1
                pairs = tokens * tokens if rows == tokens and not (cached and one) else tokens
                now = (rows, sum(4 * d * d for _ in range(rows)) + 2 * d * pairs,
                       2 * d * (tokens - 1) if cached and one else 0)  # fmt: skip
                if one == step - 1:
                    assert found[f"now-projected-{cached}"] == now[0]
                    assert found[f"now-multiplications-{cached}"] == now[1]
                    assert found[f"now-read-{cached}"] == now[2]
                projected, multiplied = projected + now[0], multiplied + now[1]
                was_read += now[2]
            assert found[f"all-projected-{cached}"] == projected
            assert found[f"all-multiplications-{cached}"] == multiplied
            assert found[f"all-read-{cached}"] == was_read


def test_recurrence(page: Any) -> None:
    at(page, "recurrence")
    for _ in range(ROUNDS):
        x, (w, u) = randoms(1, 6), randoms(2).tolist()
        found = typed(page, "recurrence", {"w": w, "u": u, **fields("x", x)})
        given = x[0].clone().requires_grad_()
        states, h = [], torch.tensor(0.0, dtype=torch.float64)
        for one in given:
            h = torch.tanh(w * one + u * h)
            states.append(h)
        agree(found, "h", [float(one.detach()) for one in states])
        moves = [float(torch.autograd.grad(one, given, retain_graph=True)[0][0]) for one in states]
        agree(found, "g", moves, 1e-10)


def test_evidence(page: Any) -> None:
    at(page, "roles")
    for hits, cases, baseline in [
        (8, 10, 0.5),
        (80, 100, 0.5),
        (0, 7, 0.1),
        (7, 7, 0.9),
        (31, 211, 0.2),
        (300, 1000, 0.9),
        (60_000, 100_000, 0.61),
    ]:
        found = typed(page, "roles", {"hits": hits, "cases": cases, "baseline": baseline})
        low, high = wilson_interval(hits, cases)
        agree(found, "low", low)
        agree(found, "high", high)
        agree(found, "chance", binomial_tail(hits, cases, baseline), 1e-10)


def test_any_text_in_any_box_is_used_or_refused_in_words(page: Any) -> None:
    page.wait_for_selector(".course[data-complete]", timeout=30_000)
    page.wait_for_selector("#they figure[data-ready]", timeout=10_000)
    page.wait_for_selector("#sampling figure[data-ready]", timeout=10_000)
    texts = {"": False, "many": False, "1e308": False, "-999999999.125": True, "1/3": True}
    counted = re.compile("roles (hits|cases|baseline)$")
    found = page.evaluate(ODD, list(texts))
    assert len(found) > 100 * len(texts)
    for one in found:
        assert one["wrong"] is None and not one["wide"], one
        if not counted.match(one["field"]):
            assert one["used"] == texts[one["text"]], one
        assert one["used"] == (one["said"] == ""), one
        assert one["used"] or "wanted is a" in one["said"], one


def test_a_power_that_no_float_holds_is_written_all_the_same(page: Any) -> None:
    at(page, "one-query").locator(".again").click()
    typed(page, "one-query", {"query-0-0": 1000})
    table = page.locator("#one-query table.steps").inner_text()
    assert "5.4·10⁴³⁴" in table and "5.1·10⁻⁴³⁵" in table  # e¹⁰⁰¹ and e⁻¹⁰⁰⁰


def test_counts_have_their_limits(page: Any) -> None:
    chapter = at(page, "roles")
    before = read(page, "roles")
    for field, text in [
        ("cases", "123456789"),
        ("cases", "1.5"),
        ("hits", "-1"),
        ("baseline", "2"),
    ]:
        chapter.locator(f'[data-field="{field}"]').fill(text)
        assert f"“{text}” is not used" in chapter.locator(".said").inner_text()
        assert read(page, "roles") == before


@pytest.mark.parametrize("swapped", [False, True])
def test_the_pronoun(page: Any, swapped: bool) -> None:
    chapter = at(page, "they")
    chapter.locator('input[data-field="swap"]').set_checked(swapped)
    one = real_numbers("pronoun")["sentences"][int(swapped)]
    key = torch.from_numpy(unpacked(one["keys"]).astype(np.float64)).view(-1, one["width"])
    query = torch.from_numpy(unpacked(one["query"]).astype(np.float64))[None]
    for _ in range(4):
        add, factor = randoms(len(key), 1), float(randoms(1).abs() + 0.1)
        found = typed(page, "they", {"factor": round(factor, 3), **fields("add", add)})
        steps = ch.attention_steps(query, key, key, scale=round(factor, 3) / 8, bias=add.T)
        agree(found, "weights", steps.weights[0])
    typed(page, "they", {"factor": 1, **fields("add", torch.zeros(len(key), 1))})


def test_the_parts_of_a_prediction(page: Any) -> None:
    chapter = at(page, "why")
    numbers = real_numbers("prediction")
    left = numbers["total"]
    for head in numbers["heads"][:3]:
        chapter.locator(f'input[data-field="keep-{head["head"]}"]').uncheck()
        left -= head["part"]
        assert abs(read(page, "why")["left"] - left) < 1e-12


def test_the_way_of_a_token(page: Any) -> None:
    at(page, "way")
    way = real_numbers("token_way")
    width, tokens, shared = way["key_dim"], len(way["tokens"]), way["kv_heads"]
    for layer, head in [(0, 0), (11, 8), (23, 4), (29, 3)]:
        found = typed(page, "way", {"layer": layer, "head": head})
        flat = torch.from_numpy(unpacked(way["layers"][layer]["numbers"]).astype(np.float64))
        queries, rest = flat[: way["heads"] * width], flat[way["heads"] * width :]
        key = rest[: shared * tokens * width].view(shared, tokens, width)[head // way["group"]]
        steps = ch.attention_steps(queries.view(-1, width)[head : head + 1], key, key)
        agree(found, "weights", steps.weights[0])
        agree(found, "scores", steps.scores[0], 1e-11)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda one: one.id)
def test_the_exercise_knows_right_from_wrong(page: Any, chapter: Chapter) -> None:
    exercise = at(page, chapter.id).locator(".exercise")
    verdict, reveal = exercise.locator(".verdict"), exercise.locator(".reveal")
    answer = exercise.locator(".answer")
    assert reveal.is_disabled() and not answer.is_visible()
    given = chapter.exercise
    if given.options:
        wrong = next(i for i in range(len(given.options)) if i != given.answer[0])
        exercise.locator(f'[data-choice="{wrong}"]').click()
        assert "Not yet" in verdict.inner_text() and not answer.is_visible()
        exercise.locator(f'[data-choice="{given.answer[0]:.0f}"]').click()
    else:
        boxes = exercise.locator(".try input").all()
        shown = [f"{one:.{given.decimals}f}" for one in given.answer]
        for tries in (
            ["x"] * len(shown),
            [f"{float(one) + 1:.{given.decimals}f}" for one in shown],
            shown,
        ):
            for box, text in zip(boxes, tries, strict=True):
                box.fill(text)
            boxes[-1].press("Enter")
            if tries[0] == "x":
                assert "not a number" in verdict.inner_text() and reveal.is_disabled()
            elif tries is not shown:
                assert "Not yet" in verdict.inner_text() and reveal.is_enabled()
    assert verdict.inner_text() == "Right." and answer.is_visible()
    link = page.locator(f'nav a[data-chapter="{chapter.id}"]')
    assert "done" in link.get_attribute("class")
    if given.state:
        exercise.locator(".set").click()


def test_keys_change_numbers_and_chapters(page: Any) -> None:
    chapter = at(page, "one-query")
    page.locator("#one-query .again").click()
    box = chapter.locator('[data-field="keys-0-0"]')
    box.focus()
    page.keyboard.press("ArrowUp")
    assert box.input_value() == "2" and read(page, "one-query")["scores-0-0"] == 3
    page.keyboard.press("Shift+ArrowDown")
    assert box.input_value() == "1.9"
    box.fill("nonsense")
    assert box.get_attribute("aria-invalid") == "true"
    assert abs(read(page, "one-query")["scores-0-0"] - 2.8) < 1e-12  # the last number stays
    page.keyboard.press("Tab")
    assert box.input_value() == "1.9"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    page.wait_for_function("location.hash === '#batch'")
    page.keyboard.press("p")
    page.wait_for_function("location.hash === '#one-query'")


def test_a_link_that_is_none_is_ignored(tmp_path: Path) -> None:
    with page_at(tmp_path, course_page()) as page:
        page.goto(page.url + "#%E0%A4%A?x=%")
        page.reload()
        page.wait_for_selector(".course[data-complete]", timeout=30_000)


def test_a_link_brings_back_the_state(page: Any) -> None:
    at(page, "one-query")
    page.locator("#one-query .again").click()
    typed(page, "one-query", {"keys-2-1": -3.25, "query-0-2": 4})
    before = read(page, "one-query")
    page.locator("#one-query .share").click()
    page.wait_for_function("document.querySelector('#one-query .said').textContent !== ''")
    url = page.evaluate("location.href")
    assert url.endswith("#one-query?query-0-2=4&keys-2-1=-3.25")
    page.locator("#one-query .again").click()
    assert read(page, "one-query") != before
    page.evaluate("location.hash = ''")
    page.evaluate("(url) => { location.href = url; }", url)
    page.wait_for_function(
        "document.querySelector('#one-query [data-field=\"keys-2-1\"]').value === '−3.25'"
    )
    assert read(page, "one-query") == before


@pytest.mark.parametrize("id", ["one-query", "mask", "way"])
def test_a_figure_as_svg_holds_its_numbers(page: Any, id: str, tmp_path: Path) -> None:
    chapter = at(page, id)
    with page.expect_download() as download:
        chapter.locator(".svg").click()
    path = tmp_path / "figure.svg"
    download.value.save_as(path)
    drawn = path.read_text()
    assert download.value.suggested_filename == f"{id}.svg"
    assert drawn.startswith("<svg") and "<script" not in drawn and "foreignObject" not in drawn
    shown = chapter.locator("figure [data-name]:visible").first.inner_text()
    assert shown in re.findall(r">([^<]+)</text>", drawn)


@pytest.mark.parametrize("width", [400, 1280])
def test_a_picture_names_its_columns_at_every_width(page: Any, tmp_path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    try:
        chapter = at(page, "one-query")
        with page.expect_download() as download:
            chapter.locator(".svg").click()
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})
    download.value.save_as(tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    texts = re.findall(r">([^<]+)</text>", drawn)
    assert {"key", "query · key", "score", "softmax", "softmax · key"} <= set(texts)
    assert drawn.count('fill="none" rx=') + drawn.count("stroke=") >= 15  # frames of the boxes


def test_words_of_a_picture_do_not_touch(page: Any, tmp_path: Path) -> None:
    """A text that goes on behind a lowered letter starts where it stands on the page."""
    chapter = at(page, "heads")
    with page.expect_download() as download:
        chapter.locator(".svg").click()
    download.value.save_as(tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    left = {text: float(x) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)<', drawn)}
    assert left["and"] - left["k"] > 8  # "W_k and": one letter of 10 pixels and a space


def test_at_every_width_nothing_is_wider_than_the_page(page: Any) -> None:
    for chapter in CHAPTERS:
        at(page, chapter.id)
    for width in (400, 768, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})


def test_nothing_sticks_out_of_its_figure(page: Any) -> None:
    typed(page, "positions", {"c-0-0": -123456.789, "c-2-3": -98765.4321})
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280  # the figure scrolls
    for chapter in CHAPTERS:
        page.locator(f"#{chapter.id} .again").click()
    for width in (400, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(OUTSIDE) == [], width
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize(
    ("id", "first", "second"),
    [("matrices", "q-0-0", "q-2-3"), ("way", "layer 23", "layer 7")],
)
def test_parts_of_a_figure_are_chosen_with_the_keyboard(
    page: Any, id: str, first: str, second: str
) -> None:
    chapter = at(page, id)
    chapter.locator(".again").click()
    part = chapter.locator(f'[data-key="{second}"]')
    assert chapter.locator(f'[data-key="{first}"]').get_attribute("aria-pressed") == "true"
    part.focus()
    page.keyboard.press("Enter")
    assert part.get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement.dataset.key") == second  # drawn anew, kept
    chapter.locator(".share").click()
    assert "?" in page.evaluate("location.hash")


def test_one_chapter_at_a_time_and_the_theme(page: Any) -> None:
    at(page, "mask")
    page.locator(".alone").click()
    assert page.locator("section.chapter:visible").count() == 1
    page.locator(".alone").click()
    assert page.locator("section.chapter:visible").count() == 16
    page.locator(".theme").click()
    assert page.locator(".course").get_attribute("data-theme") == "dark"
    page.locator(".theme").click()


def test_everything_has_a_name_for_screen_readers(page: Any) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, button, canvas, figure, table")].filter(
        (one) => !(one.getAttribute("aria-label") || one.labels?.length || one.caption
        || one.textContent.trim() || one.title)).map((one) => one.outerHTML.slice(0, 90))"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1 and page.locator("main").count() == 1


def test_every_figure_is_there_before_it_is_printed(tmp_path: Path) -> None:
    """Printing does not wait for numbers that are unpacked: nobody has to scroll to them first."""
    with page_at(tmp_path, course_page()) as page:
        page.wait_for_selector(".course[data-complete]")
        page.wait_for_function(
            "() => document.querySelectorAll('figure:not([data-ready])').length === 0"
        )
        assert page.evaluate("scrollY") == 0
        for id in ("they", "sampling"):
            assert page.evaluate(READ, id), id
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 680, "height": 1000})  # A4 without margins of 1.5 cm
        cut = """() => [...document.querySelectorAll("pre, .brackets, .figure-body")].filter(
            (one) => one.scrollWidth > one.clientWidth + 1).map(
            (one) => one.closest("section").id)"""
        assert page.evaluate(cut) == []
        tall = """() => [...document.querySelectorAll("figure")].filter((one) =>
            one.getBoundingClientRect().height > 1000).map((one) => one.closest("section").id)"""
        assert page.evaluate(tall) == []  # each on one page


def test_a_dark_course_is_printed_light(tmp_path: Path) -> None:
    with page_at(tmp_path, course_page(), dark=True) as page:
        page.wait_for_selector(".course[data-ready]")
        page.click(".theme")
        page.click(".theme")
        colour = """() => getComputedStyle(document.querySelector(".course"))
            .getPropertyValue("--ink")"""
        theme = "() => document.querySelector('.course').dataset.theme"
        before = page.evaluate(theme), page.evaluate(colour)
        assert before == ("dark", "#e9eaee")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(colour) == "#1b1d24"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert (page.evaluate(theme), page.evaluate(colour)) == before
