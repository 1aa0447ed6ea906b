from __future__ import annotations

import re

import torch

import clearhead as ch
from clearhead.explain.look import Look
from clearhead.explain.worked_examples import worked_example
from clearhead.trace.seen import Seen
from clearhead.views.page.files import style
from clearhead.views.page.html import html_fragment, html_page, page_title
from clearhead.views.page.static import script
from tests.shared.made_looks import made_look, record_of


def test_a_page_is_one_file_that_opens_no_connection() -> None:
    page = html_page(made_look())
    assert page.startswith("<!doctype html>") and page.count("<script>") == 1
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|@import|url\(", page)


def test_words_cannot_end_the_script_that_holds_them() -> None:
    fragment = html_fragment(made_look("</script><b>x</b> y z"))
    assert fragment.count("</script>") == fragment.count("<script")
    assert "<b>x" not in fragment


def test_what_is_not_interactive_is_a_picture_with_notes() -> None:
    page = html_page(made_look().gallery())
    assert "<svg" in page and "<main" in page and "<h1" in page
    assert page.count("<script") == 1 and script() in page  # that which saves pictures
    assert html_page(worked_example("selfish")[0]).count("<script") == 1


def test_titles_are_short() -> None:
    assert page_title(made_look("word " * 40)) == f"clearhead – {('word ' * 40)[:59]}…"
    assert page_title(object()) == "clearhead"
    unlabelled = Look(Seen([record_of("L0", 3, 7, causal=False, seed=5)]))
    assert page_title(unlabelled) == "clearhead" and "<svg" not in html_page(unlabelled)[:500]


def test_a_look_without_a_text_has_a_page() -> None:
    """What has no text has methods of such names instead."""
    layer, states = torch.nn.MultiheadAttention(12, 3, batch_first=True), torch.randn(1, 7, 12)
    with ch.watch(layer) as seen:
        layer(states, states, states)
    seen.missed = "1 of 2 attention modules watched; `odd` computes attention by itself"
    look = ch.look(seen)
    page = html_page(look.insight)
    assert "<title>clearhead</title>" in page and "`odd` computes attention by itself" in page
    assert seen.missed in look.insight.steps().notes


def test_every_colour_stands_in_one_file() -> None:
    colours = style("view.css")
    own = colours[colours.index("/* The page of a look") :]
    assert "--ramp-0: #" in colours and not re.search(r"#[0-9a-f]{6}", own)
    used = set(re.findall(r"var\((--[\w-]+)", own + style("roles.css")))
    made = {"--strength", "--pin", "--bar", "--heads", "--thumb"}  # set by scripts
    assert used - made <= set(re.findall(r"(--[\w-]+):", colours))


def test_dark_is_the_same_by_choice_and_by_the_system() -> None:
    colours = style("view.css").split("/* The page of a look")[0]
    light, chosen, system = (
        dict(re.findall(r"(--[\w-]+): (#\w+)", block)) for block in colours.split("}")[:3]
    )
    assert chosen == system and chosen.keys() == light.keys()
