import json

import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from clearhead.studio import looking
from clearhead.studio.looking import LiveBlocks, Pane, send_block, show_look
from clearhead.studio.worker import Cancelled
from clearhead.views.page.data import page_of_look
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def looked(pane: Pane, text: str = TEXT, ids: tuple[int, ...] = (), number: int = 1) -> Heard:
    heard = Heard()
    show_look(pane, decoder(), "tiny", job_of(heard, number), text=text, ids=ids, head=None)
    return heard


def test_the_page_of_a_live_look_is_that_of_a_look() -> None:
    """The same words, layers, masks and choices as in a file; what is later is named."""
    (found,) = looked(Pane()).of("look")
    whole = page_of_look(make_look(decoder(), TEXT)).meta
    for layer in [*found["meta"]["layers"], *whole["layers"]]:
        layer["scale"] = round(layer["scale"], 6)  # the engine's is a float32
    for name in ("axes", "bands", "layers", "title", "aids", "measure", "can_hide"):
        live, file = json.loads(json.dumps([found["meta"][name], whole[name]]))
        assert live == file, name
    assert found["meta"]["predictions"]["lens"] == {"block": "lens", "later": True}
    assert found["meta"]["proof"] is None and found["computed"] == len(
        found["meta"]["tokens"]["ids"]
    )


def test_blocks_are_made_when_asked_for() -> None:
    made = []
    blocks = LiveBlocks()
    blocks.add_all({"rows": lambda: made.append(1) or b"x"})  # type: ignore[func-returns-value]
    assert not made and blocks.bytes_of("rows") == b"x" and blocks.bytes_of("rows") == b"x"
    assert made == [1, 1] and blocks.bytes_of("other") is None  # a page keeps it, we do not
    blocks.add("sent", b"y")
    assert blocks.take(["sent", "rows"]) == {"sent": b"y", "rows": b"x"} and not blocks.made


def test_written_tokens_have_their_probabilities() -> None:
    pane = Pane()
    looked(pane, ids=(5, 9, 11))
    assert pane.look is not None and pane.logits is not None
    shares = [one.probability for one in pane.look.generated]
    assert len(shares) == 3 and shares[-1] is None
    assert all(one is not None and 0 < one < 1 for one in shares[:2])


def test_a_text_that_is_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_TOKENS", 3)
    (found,) = looked(Pane()).of("long")
    assert found["tokens"] > found["most"] == 3


def test_blocks_of_an_older_look_are_gone() -> None:
    pane, heard = Pane(), Heard()
    looked(pane, number=4)
    send_block(pane, job_of(heard), look=3, name="proof")
    assert heard.messages[-1]["kind"] == "gone"
    with pytest.raises(InputError, match="no such block"):
        send_block(pane, job_of(heard), look=4, name="nothing")
    pane.forget()
    assert pane.nbytes == 0


def test_another_kind_of_model_does_not_keep_the_last_one() -> None:
    """What a decoder had read is freed, and its count is not told of the next model."""
    pane, heard = Pane(), Heard()
    looked(pane)
    show_look(
        pane, ch.load("dates"), "dates", job_of(heard, 2), text="5 May 2021", ids=(), head=None
    )
    (found,) = heard.of("look")
    assert found["computed"] is None and pane.reader is None and pane.nbytes > 0


def test_a_look_that_nobody_waits_for_is_given_up_while_it_is_drawn() -> None:
    told: list[tuple[int, int]] = []
    page_of_look(make_look(decoder(), TEXT), progress=lambda *parts: told.append(parts))
    assert len(told) > 1 and all(0 <= done < most for done, most in told)
    pane, job = Pane(), job_of(Heard())

    def progress(_done: int, _all: int, what: str) -> None:
        if what == "drawing":
            job.over.set()
        job.check()

    job.progress = progress  # type: ignore[method-assign, assignment]
    with pytest.raises(Cancelled):
        show_look(pane, decoder(), "tiny", job, text=TEXT, ids=(), head=None)
    assert pane.look is None
