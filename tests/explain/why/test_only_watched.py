from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import clearhead as ch
from tests.shared.patched_models import TEXT, letters
from tests.shared.tiny_models import Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def seen() -> ch.Seen:
    loaded = letters()
    assert loaded.tokenizer is not None
    with ch.watch(loaded.model) as found, torch.no_grad():
        loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]))
    return found.label(loaded.tokenizer, TEXT) or found


@pytest.mark.usefixtures("unchecked")
def test_of_a_trace_the_weights_are_told_and_what_is_missing(tmp_path: Path) -> None:
    trace = seen()
    look = ch.look(trace)
    source = look.word("gh").sources[0]
    told = rf"“gh” attends to “{source.mark.text}” \({source.weight:.2f} in {source.head}\)"
    trace.save(tmp_path / "a.trace")
    for given in (trace, look, ch.open_trace(tmp_path / "a.trace")):
        with pytest.raises(ch.ClearheadError, match=told) as caught:
            ch.why(given, TEXT)  # type: ignore[arg-type]
        assert "not W_O, the norms and the output matrix" in str(caught.value)
    with pytest.raises(ch.ClearheadError, match="“cd” attends to"):
        ch.why(trace, TEXT, position="cd")  # type: ignore[arg-type]


@pytest.mark.usefixtures("unchecked")
def test_of_any_torch_model() -> None:
    with pytest.raises(ch.ClearheadError, match="does not know the parts of Linear"):
        ch.why(torch.nn.Linear(2, 2), TEXT)  # type: ignore[arg-type]


@pytest.mark.usefixtures("unchecked")
def test_of_a_transformers_model_it_is_said_how_to_load_it(tiny: Callable[[str], Tiny]) -> None:
    theirs = tiny("gpt2").theirs
    with pytest.raises(ch.ClearheadError, match="transformers' GPT2LMHeadModel itself") as caught:
        ch.why(theirs, TEXT)
    assert "ch.why(ch.load(model, tokenizer=…), text)" in str(caught.value)
    why = ch.why(ch.load(theirs), token_ids(7).tolist(), effects=False)
    assert why.proof.exact
    score = why.score("L1H2", 6, 2)  # of token ids as well
    assert score.exact and (score.query.tokens, score.key.tokens) == ((6,), (2,))
