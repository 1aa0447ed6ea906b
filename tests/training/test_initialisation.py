"""Initial weights: from the seed, and of the right size."""

from __future__ import annotations

import math

import torch

from clearhead.models.decoder import Decoder
from clearhead.training.initialisation import TIED_DEVIATION, fresh_model
from clearhead.training.sizes import language_config, pairs_config

SMALL = {"model": 48, "layers": 3, "heads": 4, "feed_forward": 64, "context": 16}


def test_the_seed_decides() -> None:
    config = language_config("tiny", 31, **SMALL)
    first, same, other = (fresh_model(config, seed).state_dict() for seed in (5, 5, 7))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_the_output_matrices_of_blocks_are_scaled_down() -> None:
    """Xavier's bound √(6/(in + out)), divided by √(2·layers)."""
    model = fresh_model(language_config("tiny", 997, **SMALL), 0)
    assert isinstance(model, Decoder)
    weights = dict(model.named_parameters())
    query, output = (
        weights[f"stack.blocks.1.attention.{name}.weight"].detach() for name in ("query", "output")
    )
    bound = math.sqrt(6 / (48 + 48))
    assert 0.9 * bound < float(query.abs().max()) <= bound
    largest = float(output.abs().max())
    assert 0.9 * bound < largest * math.sqrt(2 * 3) <= bound * 1.0001
    embedding = model.stack.embedding.tokens.weight.detach()
    assert abs(float(embedding.std()) / TIED_DEVIATION - 1) < 0.05


def test_a_model_with_norms_after_its_layers_is_not_scaled() -> None:
    model = fresh_model(pairs_config("tiny", 31, **SMALL, encoder_layers=1), 0)
    output = next(p for n, p in model.named_parameters() if n.endswith("attention.output.weight"))
    assert float(output.detach().abs().max()) > 0.9 * math.sqrt(6 / (48 + 48))
    biases = [p for n, p in model.named_parameters() if n.endswith("attention.output.bias")]
    assert biases and all(not bool(p.detach().any()) for p in biases)
