"""Errors of files that describe a model (config.json and its neighbours)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clearhead.errors import CheckpointError, ClearheadError


@contextmanager
def description_errors(where: Path | str) -> Iterator[None]:
    """Turn whatever fails while a description is read into a ``CheckpointError``.

    A description may hold anything, and arithmetic with anything fails in any way.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        message = error.message if isinstance(error, ClearheadError) else repr(error)
        raise CheckpointError(f"{where} does not describe a model: {message}") from error
