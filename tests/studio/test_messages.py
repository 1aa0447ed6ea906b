import json
import random
from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.studio.messages import KINDS, REQUIRED, parsed

VALID: dict[str, Any] = {
    "pane": 0, "model": "tiny", "text": "a text", "ids": [3], "head": "L0H1", "look": 5,
    "name": "gallery", "settings": {"temperature": 0.5, "top_k": 7, "top_p": 0.9, "min_p": 0.1},
    "count": 3, "seed": 11, "position": 2, "token": 4, "rank": 1, "instead": 5,
    "off": [{"head": "L1H2"}, {"head": "L0H0", "source": 3}], "write": 2, "map": 1,
    "place": [0, 1, 2], "measure": True, "what": "look", "format": "svg", "word": 1,
    "size": 9, "first": 0, "data": "AAAA", "heads": ["L0H1", "L1H0"],
}  # fmt: skip
WRONG: list[Any] = [
    -1,
    1.5,
    float("1e400"),
    True,
    [[]],
    {},
    {"head": 3},
    "x" * 1_100_000,
    [True],
    [-1],
]


@pytest.mark.parametrize("asked", KINDS)
def test_every_kind_with_every_field(asked: str) -> None:
    fields = {name: VALID[name] for name in KINDS[asked]}
    assert parsed(json.dumps({"id": 7, "do": asked, **fields})) == (7, asked, fields)


@pytest.mark.parametrize("asked", KINDS)
def test_every_field_is_checked(asked: str) -> None:
    """Of each field some of the wrong values are refused, and a missing one if it is needed."""
    for name, (_, default) in KINDS[asked].items():
        fields = {one: VALID[one] for one in KINDS[asked]}
        refused = 0
        for wrong in WRONG:
            try:
                parsed(json.dumps({"id": 7, "do": asked, **fields, name: wrong}))
            except InputError as error:
                assert name in error.message and len(error.message) < 200
                refused += 1
        assert refused >= 7, name
        del fields[name]
        if default is REQUIRED:
            with pytest.raises(InputError, match=f"needs the field {name}"):
                parsed(json.dumps({"id": 7, "do": asked, **fields}))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("{", "one JSON object"),
        ("[" * 100_000, "one JSON object"),
        ("3", "got int"),
        ('{"id": 1}', "asks for one of"),
        ('{"id": -1, "do": "models"}', "has an id"),
        ('{"id": 1, "do": "models", "path": "/etc/passwd"}', "no field 'path'"),
        ('{"id": 1, "do": "look"}', "needs the field pane"),
        ('{"id": 1, "do": ["look"]}', "asks for one of"),
    ],
)
def test_what_is_no_request(message: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parsed(message)


def test_a_thousand_random_messages() -> None:
    """Whatever comes is a request or an InputError."""
    dice = random.Random(5)
    pool = [None, True, -3, 1e308, "", "\u202e", "L1H2", [], [1], {}, {"id": 1}, *KINDS]
    understood = 0
    for _ in range(1000):
        names = dice.sample([*VALID, "id", "do", "x"], dice.randrange(8))
        message: Any = {name: dice.choice(pool) for name in names}
        if dice.random() < 0.5:
            message |= {"id": dice.randrange(9), "do": dice.choice([*KINDS])}
        text = json.dumps(message)
        cut = dice.randrange(len(text)) if dice.random() < 0.3 else len(text)
        try:
            parsed(text[:cut])
            understood += 1
        except InputError:
            pass
    assert 0 < understood < 500


@pytest.mark.parametrize(("asked", "name", "wrong"), [
    ("write", "count", 0), ("compare", "heads", ["L0H1"]), ("compare", "heads", ["L0H1", 3]),
])  # fmt: skip
def test_what_nothing_could_be_done_with(asked: str, name: str, wrong: Any) -> None:
    fields = {one: VALID[one] for one in KINDS[asked]} | {name: wrong}
    with pytest.raises(InputError, match=name):
        parsed(json.dumps({"id": 7, "do": asked, **fields}))
