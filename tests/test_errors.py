"""The exception tree."""

from __future__ import annotations

import inspect

import pytest

import clearhead as ch
from clearhead import errors


def test_everything_is_a_clearhead_error() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    assert len(classes) > 6
    raised = [cls for cls in classes if not issubclass(cls, Warning)]
    assert all(issubclass(cls, ch.ClearheadError) for cls in raised)
    drawn = inspect.getdoc(errors) or ""
    assert [cls.__name__ for cls in classes if cls.__name__ not in drawn] == []


def test_a_hint_follows_the_message() -> None:
    error = errors.InputError("2 came.", hint="give 3.")
    assert (error.message, error.hint) == ("2 came.", "give 3.")
    assert str(error) == "2 came.\nHint: give 3."
    assert str(errors.InputError("2 came.")) == "2 came."


def test_they_are_pythons_own_kinds_too() -> None:
    with pytest.raises(ValueError, match="axes"):
        raise errors.ShapeError("axes do not fit.")
    with pytest.raises(ImportError, match=r"pip install .clearhead\[hub\]."):
        raise errors.MissingExtraError("the hub", "hub")


def test_a_warning_names_what_was_not_read() -> None:
    warning = errors.UnreadWarning(("a", "b\x1b[2J"), where="tiny")
    assert issubclass(errors.UnreadWarning, UserWarning)
    assert warning.unread == ("a", "b\x1b[2J")
    assert str(warning) == (
        "tiny has fields or tensors that nobody here knows, 2 of them: a, b?[2J. "
        "They were not read; the model may want something else."
    )


def test_every_name_that_does_not_fit_is_listed() -> None:
    error = errors.WeightNamesError(["a", "b"], ["c"], where="model.safetensors")
    assert error.message.splitlines() == [
        "model.safetensors does not fit the model.",
        "  2 missing:",
        "    a",
        "    b",
        "  1 unexpected:",
        "    c",
    ]
