"""Errors and panics of the `tokenizers` package, which is Rust, turned into our errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clearhead.errors import CheckpointError, ClearheadError


@contextmanager
def rust_errors(doing: str, kind: type[ClearheadError] = CheckpointError) -> Iterator[None]:
    """Turn whatever `tokenizers` raises while ``doing`` something into one of our errors."""
    try:
        yield
    except ClearheadError:
        raise
    except Exception as error:
        raise kind(f"{doing} failed: {error}") from None
    except BaseException as error:
        # A Rust panic is no Exception, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise kind(
            f"{doing} failed inside the tokenizers package: {error}",
            hint="the vocabulary contradicts itself; if it came from a file, fetch that again.",
        ) from None
