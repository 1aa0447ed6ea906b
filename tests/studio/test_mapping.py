import numpy as np
import pytest

from clearhead.errors import InputError
from clearhead.studio.mapping import (
    chapter,
    read_long,
    refuse_too_long,
    send_small_maps,
    send_tile,
    show_map,
)
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def test_a_tile_holds_the_exact_weights() -> None:
    heard = Heard()
    long = read_long(decoder(), "tiny", TEXT, job_of(heard))
    show_map(long, job_of(heard, 5), "L1H2")
    send_tile(long, job_of(heard, 6), map=5, place=[0, 0, 0])
    payload = heard.payloads[heard.messages.index(heard.of("tile")[0])]
    rows, columns, kind = np.frombuffer(payload[:12], "<u4")
    cells = np.frombuffer(payload[12:], "<f4").reshape(rows, columns)
    weights = long.seen["L1H2"].weights().numpy()
    below = np.tril(np.ones_like(weights)) > 0
    assert kind == 2 and np.allclose(cells[below], weights[below], atol=1e-6)
    assert (cells[~below] == -1).all()
    (done,) = heard.of("mapping")
    assert done["counted"] == 1.0 and done["strongest"][0]["weight"] <= done["most"][0] + 1e-6


def test_a_map_is_of_one_head() -> None:
    long = read_long(decoder(), "tiny", TEXT, job_of(Heard()))
    with pytest.raises(InputError, match="one head"):
        show_map(long, job_of(Heard()), "L1")


def test_a_text_that_this_machine_cannot_hold_is_refused() -> None:
    refuse_too_long(decoder(), 1000)
    with pytest.raises(InputError, match=r"this machine has room for [\d,]+ tokens of tiny"):
        refuse_too_long(decoder(), 10**12)


def test_a_map_waits_while_tiles_are_wanted() -> None:
    heard, asked = Heard(), iter([True, True, True])
    long = read_long(decoder(), "tiny", TEXT, job_of(heard))
    send_small_maps(long, job_of(heard), lambda: next(asked, False))
    assert heard.of("small maps") and next(asked, None) is None


def test_a_chapter_is_on_every_machine() -> None:
    assert len(chapter().split()) > 1500


def test_a_map_of_an_incomplete_watch_says_what_was_missed() -> None:
    heard = Heard()
    long = read_long(decoder(), "tiny", TEXT, job_of(heard))
    show_map(long, job_of(heard), "L1H2")
    long.seen.missed = "1 of 2 attention modules watched; `x` computes attention by itself"
    show_map(long, job_of(heard), "L1H2")
    assert [message["missed"] for message in heard.of("mapped")] == ["", long.seen.missed]
