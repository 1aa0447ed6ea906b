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


def test_a_number_inside_one_of_many_dates_is_no_number() -> None:
    text = "3 May 2021, 7 cats, 1/2/2003, 9, 12 June 1999 and 5"
    spans = recognised(text)
    assert [text[a:b] for a, b in spans["date"]] == ["3 May 2021", "1/2/2003", "12 June 1999"]
    assert [text[a:b] for a, b in spans["number"]] == ["7", "9", "5"]
