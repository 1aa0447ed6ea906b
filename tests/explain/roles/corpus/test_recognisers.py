from __future__ import annotations

from clearhead.explain.roles.corpus.recognisers import recognised


def test_recognisers() -> None:
    text = "On 12 March 2021 Maria Novak paid $3,000 (7%) in Oslo by 2024-03-12, twelve days late."
    found = {
        kind: [text[start:end] for start, end in spans] for kind, spans in recognised(text).items()
    }
    assert found["date"] == ["12 March 2021", "2024-03-12"]
    assert found["number"] == ["$3,000", "7%", "twelve"]
    assert found["name"] == ["Maria Novak", "Oslo"]
