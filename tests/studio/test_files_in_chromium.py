"""Files that are dropped on the live page, models that are fetched, and the lines for Python."""

import base64
import contextlib
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.explain.make_look import make_look
from tests.shared.chromium import soon
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, serving
from tests.studio.test_in_chromium import opened

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FILE = """([name, data]) => {
  const dropped = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  dropped.items.add(new File([bytes], name));
  return dropped;
}"""


def drop(page: Any, name: str, data: bytes) -> None:
    dropped = page.evaluate_handle(FILE, [name, base64.b64encode(data).decode()])
    page.dispatch_event(".composer", "drop", {"dataTransfer": dropped})


def test_a_text_and_a_trace_are_dropped(tmp_path: Path) -> None:
    seen = make_look(decoder(), "the door opened their minds").seen
    trace = seen.save(tmp_path / "run.trace").read_bytes()
    with serving() as studio, opened(studio) as page:
        drop(page, "book.txt", b"seven lions sleep")
        page.wait_for_selector(".sentence .word:text('lions')")
        drop(page, "<b>run.trace", trace)
        page.wait_for_selector(".sentence .word:text('door')")
        assert page.get_by_label("Model", exact=True).input_value() == "<b>run.trace"
        assert page.get_by_label("Text", exact=True).is_disabled()
        drop(page, "bad.trace", trace[:-9])
        page.wait_for_selector(".status.bad")
        assert "bad.trace" in page.locator(".status").inner_text()
        drop(page, "large.txt", b"a " * 600_000)
        page.get_by_text("up to 1,000,000 characters").wait_for()
        page.wait_for_function("() => !document.querySelector('textarea').disabled")
        drop(page, "book.txt", b"the tigers are awake")
        page.wait_for_selector(".sentence .word:text('tigers')")


def run_lines(page: Any) -> dict[str, Any]:
    """What the lines that the page shows make, and print, when they are executed."""
    if page.locator(".python").is_hidden():
        page.get_by_role("button", name="Take it along").click()
    code = page.locator(".python").inner_text().replace('ch.load("tiny")', "decoder()")
    made: dict[str, Any] = {"decoder": decoder}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, made)
    page.get_by_role("button", name="Take it along").click()
    return made | {"printed": printed.getvalue()}


def test_the_lines_for_python_give_what_is_shown() -> None:
    with serving() as studio, opened(studio, f"#model=tiny&text={TEXT}&t=0.6&k=9&seed=5") as page:
        page.get_by_role("button", name="Write on").click()
        page.wait_for_selector(".writing[data-ended]")
        made = run_lines(page)
        assert made["printed"] == page.evaluate("studio.studio.panes[0].writer.tokens.map("
                                                "(one) => one.text).join('')")  # fmt: skip
        page.locator(".predictions .ask").nth(1).click()
        page.wait_for_selector(".why-live[data-ready]")
        page.locator(".why-heads input").first.focus()
        page.keyboard.press("Space")
        page.wait_for_selector(".why-live[data-measured][data-tried]")
        made, shown = run_lines(page), page.evaluate("studio.studio.panes[0].why.found")
        assert made["why"].token.id == shown["token"]["id"]
        assert made["why"].total == pytest.approx(shown["total"], rel=1e-4)
        view = page.evaluate("studio.studio.panes[0].view.state()")
        assert made["look"].chosen_word == view["word"]
        page.get_by_role("button", name="Compare").click()
        page.wait_for_selector(".comparison[data-ready]")
        second = page.get_by_label("Second text", exact=True)
        second.fill("their minds and the door")
        page.wait_for_selector(".pane:nth-child(2) .word:text('minds')")
        assert run_lines(page)["look2"].text == "their minds and the door"


def test_why_of_a_translator_and_its_lines() -> None:
    """An encoder-decoder: a head of cross-attention is switched off, and says something else."""
    address = "#model=dates&text=3rd of March 2021"
    with serving(ch.load("dates")) as studio, opened(studio, address) as page:
        page.locator(".predictions .ask").first.click()
        page.wait_for_selector(".why-live[data-ready]")
        page.get_by_label("Switch C0H0 off").focus()
        page.keyboard.press("Space")
        page.wait_for_selector(".why-live[data-measured][data-tried]")
        rows = page.locator(".without tbody tr")
        assert rows.count() >= 5
        made, shown = run_lines(page), page.evaluate("studio.studio.panes[0].why.found")
        assert made["why"].total == pytest.approx(shown["total"], rel=1e-4)
        assert "PredictedToken" in made["printed"]


def test_roles_are_measured_from_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    with serving() as studio, opened(studio) as page:
        page.get_by_role("button", name="Measure the roles of all heads").click()
        page.wait_for_function("() => /Role of|no role/.test(document.querySelector('.role')"
                               ".textContent)")  # fmt: skip
        assert list((tmp_path / "roles").iterdir())
        known = page.evaluate("studio.studio.panes[0].roles.heads")
        roles = {one["role"] for found in known.values() for one in found}
        finder = page.get_by_label("Find heads by role")
        assert finder.locator("option").count() == len(roles) + 1
        for role in sorted(roles)[:3]:
            finder.select_option(role)
            chosen = page.evaluate("studio.studio.panes[0].view.headName()")
            assert role in [one["role"] for one in known[chosen]]


def test_a_model_begins_with_a_text_that_it_can_read() -> None:
    with serving(decoder(), ch.load("dates")) as studio, opened(studio, "#model=tiny") as page:
        field, picker = (page.get_by_label(name, exact=True) for name in ("Text", "Model"))
        assert field.input_value().startswith("The kids were scared")
        picker.select_option("dates")
        soon(page.locator(".headline"), "2021 in the source")
        assert field.input_value() == "3rd of March 2021"
        field.fill("May 5, 2020")  # from now on it is the reader's
        soon(page.locator(".sentence"), "2020")
        picker.select_option("tiny")
        page.wait_for_function("() => studio.studio.panes[0].meta.model === 'tiny'")
        assert field.input_value() == "May 5, 2020"


def test_models_that_only_read_do_not_offer_to_write() -> None:
    with ch.studio(ch.load("dates"), port=0) as studio, opened(studio) as page:
        button = page.get_by_role("button", name="Write on")
        assert button.is_disabled()
        assert (
            button.get_attribute("title") == "Only decoders write on; this is an encoder-decoder."
        )


def held(load: Callable[..., Any], go: threading.Event) -> Callable[..., Any]:
    """Loading that goes on telling that it has just begun, until it may go on."""

    def waits(name: str, progress: Callable[[int, int, str], None]) -> Any:
        while not go.wait(0.05):
            progress(1, 100_000_000, "downloading")
        return load(name, progress)

    return waits


@pytest.mark.download
def test_a_model_of_the_catalogue_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    go = threading.Event()
    with serving() as studio, opened(studio) as page:
        monkeypatch.setattr(studio.requests.shelf, "load", held(studio.requests.shelf.load, go))
        picker = page.get_by_label("Model", exact=True)
        picker.select_option("minilm")
        question = page.get_by_role("dialog", name="Load minilm?")
        assert "It is fetched first" in question.inner_text()
        question.get_by_role("button", name="Cancel").click()
        assert picker.input_value() == "tiny" and not list(tmp_path.rglob("*.safetensors"))
        picker.select_option("minilm")
        question.get_by_role("button", name="Fetch and load").click()
        page.wait_for_selector(".bar-of-work:not([hidden])")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_text("Stopped.").wait_for()
        assert picker.input_value() == "tiny"  # the model that is shown stays
        go.set()
        picker.select_option("minilm")
        question.get_by_role("button", name="Fetch and load").click()
        fetched = "() => studio.studio.panes[0].meta.model === 'minilm'"
        page.wait_for_function(fetched)
