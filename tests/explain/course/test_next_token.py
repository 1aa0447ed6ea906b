"""All logits after a text."""

from __future__ import annotations

import torch

from clearhead.explain.course.next_token import next_token
from clearhead.explain.course.packed import unpacked
from clearhead.explain.course.tokens import tokenizer_of
from tests.shared.explain_models import decoder


def test_the_logits_are_the_model_s() -> None:
    loaded, text = decoder(), "the students opened their"
    found = next_token(loaded, text)
    with torch.no_grad():
        wanted = loaded.model(torch.tensor([tokenizer_of(loaded).encode(text)]))[0, -1]
    logits = torch.from_numpy(unpacked(found["logits"]).copy())
    assert torch.allclose(logits, wanted, atol=1e-6) and found["vocab"] == len(wanted) == 300
    assert found["ids"][0] == int(wanted.argmax())
    assert found["tokens"][0] == tokenizer_of(loaded).decode([found["ids"][0]])
