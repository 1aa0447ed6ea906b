from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import clearhead as ch
from clearhead.explain.why.prediction_run import predicts, run_for
from tests.shared.tiny_models import Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def test_logits_before_a_softcap_are_the_heads_own(tiny: Callable[[str], Tiny]) -> None:
    loaded = tiny("gemma2").loaded
    run = run_for(loaded, token_ids(6).tolist())
    cap = loaded.config.output_softcap
    assert cap == 11.0
    assert torch.allclose(cap * torch.tanh(run.uncapped / cap), run.logits, atol=1e-5)
    assert loaded.model.head.softcap == cap  # type: ignore[union-attr]


def test_a_masked_model_wants_a_mask_or_a_word(tiny: Callable[[str], Tiny]) -> None:
    loaded = tiny("bert-masked").loaded
    with pytest.raises(ch.ClearheadError, match="predicts the token at a place: which one"):
        run_for(loaded, token_ids(6).tolist())
    assert run_for(loaded, token_ids(6).tolist(), position=2).position == 2


def test_which_models_predict(tiny: Callable[[str], Tiny]) -> None:
    assert predicts(tiny("llama").loaded) and predicts(ch.load("dates"))
    assert not predicts(tiny("bert").loaded)


def test_the_decoder_of_an_encoder_decoder_may_be_at_its_start() -> None:
    run = run_for(ch.load("dates"), "", source="3rd of March 2021")
    assert run.position == 0 and len(run.passage) == 1
