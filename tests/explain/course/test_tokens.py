"""The tokenizer of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clearhead.errors import InputError
from clearhead.explain.course.tokens import tokenizer_of
from tests.shared.explain_models import decoder


def test_a_model_without_a_tokenizer_is_refused() -> None:
    assert tokenizer_of(decoder()) is decoder().tokenizer
    with pytest.raises(InputError, match="tiny has no tokenizer"):
        tokenizer_of(replace(decoder(), tokenizer=None))
