from __future__ import annotations

import pytest
import torch
from transformers.activations import ACT2FN

from clearhead.errors import CheckpointError
from clearhead.layers.feed_forward import ACTIVATIONS
from clearhead.models.config import ModelConfig
from clearhead.models.families.field_values import (
    ACTIVATION_NAMES,
    MOST_LAYERS,
    activation_of,
    apart,
    first_token,
    head_of,
    layer_kinds,
    one_or_all,
    public_activation,
    token_ids,
    window_marks,
    written_kinds,
)

CONFIG = ModelConfig(
    kind="decoder", vocab=11, context=13, model=6, layers=3, heads=1, feed_forward=7, window=5,
    window_layers=(True, False, True),
)  # fmt: skip


def test_window_marks_does_not_count_to_a_trillion() -> None:
    assert window_marks(5, lambda layer: layer >= 3) == (False, False, False, True, True)
    with pytest.raises(CheckpointError, match="no model has more than"):
        window_marks(MOST_LAYERS + 1, bool)


def test_ids() -> None:
    assert (token_ids(None), token_ids(7), token_ids([7, 5])) == ((), (7,), (7, 5))
    assert (first_token([7, 5]), first_token(None)) == (7, None)
    assert (one_or_all((7, 5)), one_or_all((7,)), one_or_all(())) == ([7, 5], 7, None)
    assert (apart(0.1, 0.1), apart(0.2, 0.1)) == (None, 0.2)


@pytest.mark.parametrize("name", sorted(ACT2FN))
def test_every_activation_of_transformers(name: str) -> None:
    """Known ones compute the same numbers; the others are refused by name."""
    numbers = torch.linspace(-7, 7, 1009)
    if name in ACTIVATION_NAMES:
        ours = ACTIVATIONS[activation_of({"hidden_act": name}, "hidden_act")]
        assert torch.allclose(ours(numbers), ACT2FN[name](numbers), atol=1e-6)
    else:
        with pytest.raises(CheckpointError, match=f"hidden_act is '{name}', an activation that"):
            activation_of({"hidden_act": name}, "hidden_act")


def test_activations_are_written_by_their_public_names() -> None:
    for ours in ACTIVATIONS:
        name = public_activation(CONFIG.changed(activation=ours))
        assert name in ACT2FN
        assert activation_of({"a": name}, "a") == ours
    with pytest.raises(CheckpointError, match="hidden_act is 'None'"):
        activation_of({"hidden_act": None}, "hidden_act")


def test_kinds_of_layers() -> None:
    kinds = ["sliding_attention", "full_attention", "attention"]
    assert layer_kinds({"layer_types": kinds}, 3, 5) == (True, False, False)
    assert layer_kinds({}, 3, None) is None
    assert written_kinds(CONFIG) == ["sliding_attention", "full_attention", "sliding_attention"]
    for kind in ("chunked_attention", "linear_attention", 7, ["full_attention"]):
        with pytest.raises(CheckpointError, match=r"layer_types names .* which is not known"):
            layer_kinds({"layer_types": [kind, kind, kind]}, 3, 5)
    with pytest.raises(CheckpointError, match="layer_types has 3 entries for 2 layers"):
        layer_kinds({"layer_types": kinds}, 2, 5)
    with pytest.raises(CheckpointError, match="sliding_attention, and sliding_window gives no"):
        layer_kinds({"layer_types": kinds}, 3, None)


def test_heads_by_the_name_of_the_architecture() -> None:
    known = {"TinyModel": "none", "TinyForMaskedLM": "masked"}
    assert head_of({"architectures": ["TinyForMaskedLM"]}, known) == "masked"
    assert head_of({"architectures": ["tinyformaskedlm"]}, known) == "masked"
    assert head_of({"architectures": None}, known) == head_of({}, known) == "none"
    with pytest.raises(CheckpointError, match=r"architectures names TinyForToken.*\n.*TinyModel, "):
        head_of({"architectures": ["TinyForTokenClassification"]}, known)
