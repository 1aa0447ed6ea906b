import json
from pathlib import Path

import pytest

from clearhead.studio import client
from clearhead.studio.client import _number_of
from tests.studio.heard import Talker, serving


def test_the_number_of_a_request_that_is_wrong_otherwise() -> None:
    for text, number in (('{"id": 7, "do": 3}', 7), ("{", 0), ("[]", 0), ('{"id": -1}', 0)):
        assert _number_of(text) == number


def test_what_a_page_asked_for_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that wait are counted in both directions: sent ones make room again."""
    monkeypatch.setattr(client, "MOST_UNSENT", 100_000)
    with serving() as studio, Talker(studio) as talker:
        for _ in range(20):  # more than the limit in all, but each is taken
            assert len(talker.ask("chapter", "chapter")["text"]) > 10_000
        (one,) = studio.requests.clients
        assert one._size == 0 and one.open


def test_messages_hold_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    with serving() as studio, Talker(studio):
        (one,) = studio.requests.clients
        with pytest.raises(ValueError, match="JSON"):
            one.tell("look", 1, number=float("nan"))
    json.dumps({})


def test_messages_of_a_burst_come_in_order_and_unpacked() -> None:
    """The server's thread is woken once for those that it has not taken yet."""
    with serving() as studio, Talker(studio) as talker:
        (one,) = studio.requests.clients
        for number in range(300):
            one.tell("token", number, bytes(number % 2), index=number)
        assert [talker.hear()["index"] for _ in range(300)] == [*range(300)]
        assert talker.line.protocol.extensions == []
