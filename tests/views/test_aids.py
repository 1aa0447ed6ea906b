from __future__ import annotations

from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from clearhead.errors import InputError
from clearhead.explain.pictures import Aids
from clearhead.views.aids import CHOICES, checked_aids


def test_there_are_choices_for_every_aid() -> None:
    assert list(CHOICES) == [aid.name for aid in fields(Aids)]
    for name, kind in get_type_hints(Aids).items():
        assert CHOICES[name] == ((True, False) if kind is bool else get_args(kind))


def test_changes_are_made_or_refused() -> None:
    assert checked_aids() == Aids()
    assert checked_aids(Aids(colour="log"), pool="sum") == Aids(colour="log", pool="sum")
    with pytest.raises(InputError, match="words must be one of True, False; got 'yes'"):
        checked_aids(words="yes")
