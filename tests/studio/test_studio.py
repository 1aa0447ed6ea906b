import urllib.request

import pytest

import clearhead as ch
from clearhead.errors import InputError
from tests.shared.explain_models import decoder
from tests.studio.heard import LONG


def test_it_runs_shows_itself_in_a_frame_and_ends() -> None:
    studio = ch.studio(decoder(), port=0)
    try:
        with urllib.request.urlopen(studio.url, timeout=LONG) as page:
            assert b"clearhead studio" in page.read()
            assert "frame-ancestors" not in page.headers["Content-Security-Policy"]
        assert f'<iframe src="{studio.url}"' in studio._repr_html_()
        assert studio.running and repr(studio) == f"Studio({studio.url!r})"
    finally:
        studio.close()
    assert not studio.running and repr(studio).endswith(", closed)")
    assert studio._socket.fileno() == -1


def test_every_studio_has_a_token_of_its_own() -> None:
    with ch.studio(decoder(), port=0) as one, ch.studio(decoder(), port=0) as other:
        assert one._token != other._token and len(one._token) >= 32


@pytest.mark.parametrize("given", [[], 3, [decoder, 3], None, "", "no-such", "x" * 9999, "a\0b"])
def test_what_cannot_be_shown(given: object) -> None:
    with pytest.raises(InputError, match="model"):
        ch.studio(given, port=0)  # type: ignore[arg-type]


def test_an_empty_address_is_not_every_address() -> None:
    with pytest.raises(InputError, match="host is an address"):
        ch.studio(decoder(), host=" ")
