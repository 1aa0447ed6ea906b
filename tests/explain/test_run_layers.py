from __future__ import annotations

import torch

from clearhead.explain.make_look import make_look
from clearhead.explain.run_layers import RunLayers
from tests.shared.explain_models import decoder, translator

TEXT = "the naïve students opened"


def test_groups_are_found_by_letter_layer_and_head_and_made_once() -> None:
    run = RunLayers(make_look(decoder(), TEXT).seen, 0, words=True, written=None)
    group = run.group("L")
    assert run.group("L1") is group and run.group("L0H3") is group
    tokens = run.group("L", words=False)
    assert tokens is not group and len(tokens.rows) > len(group.rows)


def test_the_layers_of_generated_words() -> None:
    seen = make_look(translator(), "their books", source="the door").seen
    assert RunLayers(seen, 0, words=True, written=None).output_letter == "C"
    seen = make_look(decoder(), TEXT).seen
    assert RunLayers(seen, 0, words=True, written=None).output_letter == "L"


def test_weights_of_some_rows() -> None:
    run = RunLayers(make_look(decoder(), TEXT).seen, 0, words=False, written=None)
    names, weights = run.weights_in(run.group("L"))("L1", [3, 1])
    assert names == ["L1H0", "L1H1", "L1H2", "L1H3"]
    assert torch.equal(weights, run.view("L1").weights([3, 1]))
