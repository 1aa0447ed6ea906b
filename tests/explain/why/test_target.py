from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.why.target import predicted, token_id, token_text


def test_a_predicted_token() -> None:
    loaded = ch.load("dates")
    logits = torch.zeros(loaded.config.vocab)
    logits[9], logits[10] = 3.0, 5.0
    found = predicted(loaded, logits, 9)
    assert (found.id, found.text, found.logit, found.rank) == (9, "0", 3.0, 2)
    assert found.probability == pytest.approx(float(logits.softmax(0)[9]))


def test_the_hint_can_be_typed_or_names_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ch.load("dates")
    with pytest.raises(ch.ClearheadError, match="take the first: '0'"):
        token_id(loaded, "03")
    assert loaded.tokenizer is not None
    # as byte-level tokenizers do with the first byte of an emoji
    monkeypatch.setattr(loaded.tokenizer, "decode", lambda _ids, **_options: "\ufffd")
    with pytest.raises(ch.ClearheadError, match="in Python it has the token id 9"):
        token_id(loaded, "03")


def test_tokens_by_text_and_by_id() -> None:
    loaded = ch.load("dates")
    assert token_id(loaded, "0") == token_id(loaded, 9) == 9
    assert token_text(loaded, 9) == "0"
    with pytest.raises(ch.ClearheadError, match="instead is empty"):
        token_id(loaded, "", "instead")
    with pytest.raises(ch.ClearheadError, match="is 2 tokens here"):
        token_id(loaded, "03")
