from __future__ import annotations

import pytest

from clearhead.checkpoints.description import description_errors
from clearhead.errors import CheckpointError, ConfigError


@pytest.mark.parametrize(
    "error", [TypeError("a"), ValueError("a"), KeyError("a"), AttributeError("a"), OverflowError()]
)
def test_whatever_fails_becomes_one_error(error: Exception) -> None:
    with (
        pytest.raises(CheckpointError, match=r"config\.json does not describe a model") as caught,
        description_errors("config.json"),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_our_own_words_are_kept_and_other_errors_pass() -> None:
    with pytest.raises(CheckpointError, match="a model: heads must be 1"), description_errors("x"):
        raise ConfigError("heads must be 1 or more", hint="not here")
    with pytest.raises(KeyboardInterrupt), description_errors("x"):
        raise KeyboardInterrupt
