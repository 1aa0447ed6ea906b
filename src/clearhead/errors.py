"""The exception tree.

Every error that clearhead raises on purpose says what was wanted, what came and the likely reason.

::

    ClearheadError
    ├── InputError (also a ValueError)      an argument is wrong: shape, dtype, range, NaN
    │   ├── ShapeError                      a tensor's axes do not fit
    │   ├── NotFiniteError                  numbers are NaN, or infinite where they may not be
    │   └── ConfigError                     a model description contradicts itself
    ├── CheckpointError                     a model file is broken, hostile or of an unknown kind
    │   └── WeightNamesError                names are missing or unexpected; lists all of them
    ├── StoreError                          a model is not here and cannot be fetched
    └── MissingExtraError (also an ImportError)   a feature needs an optional package

    UnreadWarning (a UserWarning)           a model file says something that nobody here knows
"""

from __future__ import annotations

from clearhead.visible import visible_text


class ClearheadError(Exception):
    """Base of everything that clearhead raises on purpose; ``hint`` says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nHint: {hint}")
        self.message = message
        self.hint = hint


class InputError(ClearheadError, ValueError):
    """An argument is wrong."""


class ShapeError(InputError):
    """A tensor's axes do not fit."""


class NotFiniteError(InputError):
    """Numbers are NaN, or infinite where they may not be: in an argument, or in a model."""


class ConfigError(InputError):
    """A model description contradicts itself."""


class CheckpointError(ClearheadError):
    """A model file is broken, hostile or of an unknown kind."""


class WeightNamesError(CheckpointError):
    """Tensor names are missing from a checkpoint, or unexpected in it."""

    def __init__(self, missing: list[str], unexpected: list[str], *, where: str) -> None:
        self.missing = missing
        self.unexpected = unexpected
        lines = [f"{where} does not fit the model."]
        for title, names in (("missing", missing), ("unexpected", unexpected)):
            if names:
                lines.append(f"  {len(names)} {title}:")
                lines.extend(f"    {visible_text(name)}" for name in names)
        super().__init__("\n".join(lines), hint="is config.json the one of these weights?")


class StoreError(ClearheadError):
    """A model is not on this machine and cannot be fetched."""


class MissingExtraError(ClearheadError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional package that is not installed.",
            hint=f'pip install "clearhead[{extra}]"',
        )


class UnreadWarning(UserWarning):
    """A model file has fields, metadata or tensors that are not read; ``unread`` names them."""

    def __init__(self, unread: tuple[str, ...], *, where: str) -> None:
        self.unread = unread
        shown = ", ".join(_printable(name) for name in unread[:MOST_NAMES])
        more = f" and {len(unread) - MOST_NAMES} more" if len(unread) > MOST_NAMES else ""
        super().__init__(
            f"{_printable(where)} has fields or tensors that nobody here knows, {len(unread)} of "
            f"them: {shown}{more}. They were not read; the model may want something else."
        )


MOST_NAMES = 20
LONGEST_NAME = 80


def _printable(name: str) -> str:
    """A name out of a file on one line: without control characters, and cut where it is long."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in name)
    return clean if len(clean) <= LONGEST_NAME else f"{clean[:LONGEST_NAME]}…"
