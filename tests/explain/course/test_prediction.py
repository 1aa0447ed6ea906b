"""The heads of a prediction: parts that add up, ablations that were run."""

from __future__ import annotations

import torch

import clearhead as ch
from clearhead.explain.course.prediction import prediction
from clearhead.explain.course.tokens import tokenizer_of
from tests.shared.explain_models import decoder


def test_the_parts_add_up_to_the_model_s_own_number() -> None:
    loaded, text = decoder(), "the students opened their"
    found = prediction(loaded, text, " books", " minds")
    heads = {one["head"]: one for one in found["heads"]}
    assert len(heads) == 8 and abs(found["total"] - found["measured"]) < 1e-4
    assert abs(sum(one["part"] for one in heads.values()) + found["others"] - found["total"]) < 1e-9
    ids = torch.tensor([tokenizer_of(loaded).encode(text)])
    tokens = [tokenizer_of(loaded).encode(word, special=False)[0] for word in (" books", " minds")]
    with ch.ablate(loaded, "L1H2"), torch.no_grad():
        logits = loaded.model(ids)[0, -1]
    without = float(logits[tokens[0]] - logits[tokens[1]])
    assert abs(found["total"] - heads["L1H2"]["effect"] - without) < 1e-4
