from __future__ import annotations

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.text.subwords.rust_guard import rust_errors

PanicException = type("PanicException", (BaseException,), {})


def test_complaints_and_panics_become_our_errors() -> None:
    with pytest.raises(CheckpointError, match="reading x failed: no"), rust_errors("reading x"):
        raise RuntimeError("no")
    panic = pytest.raises(InputError, match="inside the tokenizers package: out of bounds")
    with panic, rust_errors("training", InputError):
        raise PanicException("out of bounds")


def test_ours_and_the_users_pass() -> None:
    with pytest.raises(InputError, match=r"^ours$"), rust_errors("reading x"):
        raise InputError("ours")
    with pytest.raises(KeyboardInterrupt), rust_errors("reading x"):
        raise KeyboardInterrupt
