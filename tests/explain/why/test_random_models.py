"""Random models of random configs: sums, effects and edges against ways that share no code.

A head is taken away by zeros in W_O, a feed-forward layer by zeros in its last matrix, and what a
head takes from a word by zeros in that word's value: no hook of ours is in any of them. Everything
is in float64, so that rounding hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.interventions.places import Place, layers_of, places_of
from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.parts import Why
from clearhead.layers.multi_head import MultiHeadAttention
from tests.shared.random_models import VOCAB, random_config, random_model

pytestmark = pytest.mark.usefixtures("one_thread")
SEEDS = (0, 11, 78, 19, 23, 107, 2)  # together they have every value of every option: see below
TOKEN, INSTEAD = 13, 29


def drawn(seed: int, length: int) -> list[int]:
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCAB, (length,), generator=chance).tolist()


def explained(loaded: Loaded, seed: int, **options: Any) -> tuple[Why, Callable[[], Tensor]]:
    """An explanation, and a function that runs the model on the same tokens."""
    text, source = drawn(seed, 9), drawn(seed + 1, 6)
    if loaded.config.kind == "encoder-decoder":
        start = loaded.config.start
        ids = torch.tensor([[start, *text]])
        why = make_why(loaded, text, token=TOKEN, instead=INSTEAD, source=source, **options)
        return why, lambda: loaded.model(torch.tensor([source]), ids)[0, why.position]
    if loaded.config.kind == "encoder":
        options["position"] = seed % 9
    why = make_why(loaded, text, token=TOKEN, instead=INSTEAD, **options)
    return why, lambda: loaded.model(torch.tensor([text]))[0, why.position]


def target(loaded: Loaded, logits: Tensor) -> float:
    """The difference of the two logits, before a softcap."""
    cap = loaded.config.output_softcap
    raw = logits if cap is None else cap * torch.atanh(logits / cap)
    return float(raw[TOKEN] - raw[INSTEAD])


@contextmanager
def zeros_in_the_weights(place: Place) -> Iterator[None]:
    """Take an output away by changing weights."""
    layer: Any = place.layer
    linear = layer.output if isinstance(layer, MultiHeadAttention) else layer.down
    given = [linear.weight] if place.heads else [linear.weight, linear.bias]
    changed = [one for one in given if one is not None]
    kept = [one.clone() for one in changed]
    for one in changed:
        one[..., place.columns[0]] = 0
    yield
    for one, before in zip(changed, kept, strict=True):
        one.copy_(before)


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_effects(seed: int) -> None:
    loaded = random_model(seed)
    loaded.model.double()
    why, run = explained(loaded, seed, effects=True)
    assert why.proof.exact, why.proof
    base = target(loaded, run())
    assert why.total == pytest.approx(base, rel=1e-6, abs=1e-6)
    assert why.effects is not None
    for effect in why.effects.all[:: 1 + len(why.effects.all) // 5]:
        (place,) = places_of(loaded, effect.name)
        with zeros_in_the_weights(place):
            logits = run()
        assert effect.total == pytest.approx(base - target(loaded, logits), abs=1e-6), effect.name
        assert effect.probability == pytest.approx(float(logits.softmax(0)[TOKEN]), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_edges(seed: int) -> None:
    loaded = random_model(seed)
    loaded.model.double()
    _, run = explained(loaded, seed, effects=False)
    attention = [(name, one) for name, (_, one) in layers_of(loaded) if not name.endswith("F")]
    name, layer = attention[seed % len(attention)]
    assert isinstance(layer, MultiHeadAttention)
    shared, key = seed % layer.kv_heads, seed % 5
    group = layer.heads // layer.kv_heads

    def without_value(_module: Any, _args: Any, values: Tensor) -> Tensor:
        values = values.clone()
        values[:, key, shared * layer.value_dim : (shared + 1) * layer.value_dim] = 0
        return values

    with layer.value.register_forward_hook(without_value):
        expected = run()
    heads = [f"{name}H{head}" for head in range(shared * group, (shared + 1) * group)]
    with ch.ablate(loaded, heads, source=key):
        found = run()
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def values(config: ch.ModelConfig) -> set[tuple[str, Any]]:
    """The options of a config that decide how a forward is computed."""
    fields = (
        "kind", "kv_heads", "value_dim", "positions", "position_offset", "segments", "sinks",
        "attention_scale", "attention_softcap", "attention_norm", "attention_bias", "window",
        "attention_output_bias", "window_rotary_base", "activation", "gated", "norm_place",
        "feed_forward_bias", "norm", "norm_offset", "embedding_norm", "embedding_scale",
        "output_scale", "output_softcap", "output_bias",
    )  # fmt: skip
    embeddings = ("embeddings", (config.tied, config.shared_embedding))
    windows = ("window_layers", config.window_layers is None)
    return {embeddings, windows, *((name, getattr(config, name)) for name in fields)}


def test_the_seeds_have_every_value_of_every_option() -> None:
    drawn = set().union(*(values(random_config(seed)) for seed in range(300)))
    assert set().union(*(values(random_config(seed)) for seed in SEEDS)) == drawn
