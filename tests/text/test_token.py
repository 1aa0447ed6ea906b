from __future__ import annotations

import dataclasses

import pytest

from clearhead.text import Token


def test_a_token_is_a_value() -> None:
    token = Token(7, " kids", 3, 8)
    assert token == Token(id=7, text=" kids", start=3, end=8, special=False)
    assert len({token, Token(7, " kids", 3, 8)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        token.id = 8  # type: ignore[misc]
