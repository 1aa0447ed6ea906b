import http.client

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from clearhead.studio.guard import Guard
from tests.studio.heard import LONG, Talker, serving


def status(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    line.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        line.putheader(name.replace("_", "-"), value)
    line.endheaders()
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer.status, dict(answer.getheaders()), body


def test_who_comes_in_and_who_does_not() -> None:
    with serving() as studio:
        port, path = studio.port, studio.url.partition(str(studio.port))[2]
        own = f"127.0.0.1:{port}"
        good, headers, body = status(port, path, Host=own)
        assert (good, b"clearhead studio" in body) == (200, True)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        for asset in ("studio.js", "studio.css"):
            assert status(port, path + asset, Host=f"localhost:{port}")[0] == 200
        assert status(port, path, Host=f"rebound.example:{port}")[0] == 403
        assert status(port, path, Host="127.0.0.1:1")[0] == 403
        assert status(port, path, Host=own, Origin="http://evil.example")[0] == 403
        assert status(port, path, Host=own, Origin="null")[0] == 403
        assert status(port, path, Host=own, Sec_Fetch_Site="cross-site")[0] == 403
        assert status(port, "/", Host=own)[0] == 404
        assert status(port, "/wrong/", Host=own)[0] == 404
        for sought in ("../../etc/passwd", "%2e%2e/pyproject.toml", "assets/studio.js", "//x"):
            assert status(port, path + sought, Host=own)[0] == 404


def test_a_websocket_of_another_site() -> None:
    with serving() as studio:
        live = studio.url.replace("http", "ws", 1) + "live"
        tokenless = f"ws://127.0.0.1:{studio.port}/live"
        for address, origin in ((live, "http://evil.example"), (tokenless, live[:-5])):
            with pytest.raises(InvalidStatus, match="403"):
                connect(address, origin=Origin(origin), proxy=None)
        with Talker(studio) as talker:
            assert talker.ask("models", "models")["first"] == "tiny"


def test_hosts_of_a_server_for_other_machines() -> None:
    guard = Guard(None, "t", "0.0.0.0", 80, framed=False)  # type: ignore[arg-type]
    assert guard._is_own("192.168.1.7") and guard._is_own("[::1]:80")
    assert not guard._is_own("rebound.example") and not guard._is_own("192.168.1.7:81")
    assert not guard._is_own("127.0.0.1:80@evil.example") and not guard._is_own("[")
    assert any("frame-ancestors 'none'" in value for _, value in guard.headers())


ODD = ("http://[", "http://[::1", "http://127.0.0.1:x", "http://127.0.0.1:999999", "//", "\xff",
       "http://127.0.0.1:80:80", "http://user@127.0.0.1")  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_headers_that_are_no_address_are_refused(odd: str) -> None:
    """By the guard itself, with its own words: nothing fails on the way."""
    with serving() as studio:
        port, path = studio.port, studio.url.partition(str(studio.port))[2]
        for headers in ({"Origin": odd}, {"Host": odd.removeprefix("http://")}):
            code, _, _ = status(port, path, **{"Host": f"127.0.0.1:{port}", **headers})
            assert code in (400, 403), headers
        for target in ("*", "x", "http://127.0.0.1/", "//", "/%ff%00/"):
            assert status(port, target, Host=f"127.0.0.1:{port}")[0] in (400, 404), target
