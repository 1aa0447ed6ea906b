"""NaN is refused on every path, with one error; so are settings that leave no token."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.engine.engine import engine_runs_here
from clearhead.errors import InputError, NotFiniteError
from clearhead.generation import runner_factory
from clearhead.generation.sound_logits import refuse_no_choice, refuse_unsound

MESSAGE = "no token can be sampled: the model's logits are NaN or infinite"
WAYS: dict[str, Callable[[Loaded, bool], object]] = {
    "greedy": lambda model, engine: list(
        ch.generate(model, [5, 6, 7], temperature=0, max_tokens=3, engine=engine)
    ),
    "samples": lambda model, engine: list(
        ch.generate(model, [5, 6, 7], samples=3, max_tokens=3, engine=engine)
    ),
    "beams": lambda model, engine: ch.beam_search(model, [5, 6, 7], max_tokens=3, engine=engine),
    "speculation": lambda model, engine: list(
        ch.generate(model, [5, 6, 5, 6, 5, 6], speculate=4, max_tokens=3, engine=engine)
    ),
    "session": lambda model, engine: list(
        ch.generate(ch.Session(model, engine=engine), [5, 6, 7], max_tokens=3)
    ),
}
ENGINES = [False, pytest.param(True, marks=pytest.mark.skipif(
    not engine_runs_here(), reason="the engine does not run here"))]  # fmt: skip


@pytest.fixture(autouse=True)
def with_engine(monkeypatch: pytest.MonkeyPatch, torch_alone: None) -> None:
    """Undo what the folder's tests do without: here both runners are tried."""
    monkeypatch.undo()


def decoder(**fields: Any) -> ch.Decoder:
    torch.manual_seed(3)
    shape: dict[str, Any] = {
        "kind": "decoder", "vocab": 97, "context": 61, "model": 52, "layers": 2, "heads": 2,
        "feed_forward": 67, "bos": 1, "eos": (2,),
    }  # fmt: skip
    config = ch.ModelConfig(**shape | fields)
    return ch.Decoder(config).eval().requires_grad_(False)


def spoiled(model: Any, name: str, number: float) -> Loaded:
    """A copy of the model with one wrong number that every text meets."""
    model = copy.deepcopy(model)
    weight = dict(model.named_parameters())[name]
    if "tokens" in name:
        weight[:, 3] = number
    else:
        weight.view(-1)[0 if "position" in name else weight.numel() // 2] = number
    return Loaded("spoiled", Path(), model, model.config, None)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize(
    "fields",
    [
        {"gated": True},
        {"activation": "relu", "positions": "learned"},
        {"norm": "layer", "norm_place": "after", "attention_bias": True},
    ],
    ids=["gated", "relu", "after"],
)
def test_one_number_anywhere(fields: dict[str, Any], number: float, engine: bool) -> None:
    model = decoder(**fields)
    for name, _ in model.named_parameters():
        loaded = spoiled(model, name, number)
        way = list(WAYS)[len(name) % len(WAYS)]
        with pytest.raises(NotFiniteError, match=MESSAGE):
            WAYS[way](loaded, engine)
            pytest.fail(f"{name}, {way}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_generate(way: str, engine: bool) -> None:
    loaded = spoiled(decoder(gated=True), "stack.blocks.1.attention.key.weight", math.nan)
    with pytest.raises(NotFiniteError, match=MESSAGE):
        WAYS[way](loaded, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_an_encoder_decoder(part: str, engine: bool) -> None:
    dates = ch.load("dates")
    name = next(n for n, _ in dates.model.named_parameters() if n.startswith(part) and "value" in n)
    loaded = spoiled(dates.model, name, math.nan)
    for way in ("greedy", "samples", "beams", "session"):
        with pytest.raises(NotFiniteError, match=MESSAGE):
            WAYS[way](loaded, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_only_some_rows_of_a_batch(engine: bool) -> None:
    """Token 8 has a NaN embedding, and only the second prompt holds it."""
    model = decoder(gated=True, tied=False)
    dict(model.named_parameters())["stack.embedding.tokens.weight"][8] = math.nan
    loaded = Loaded("spoiled", Path(), model, model.config, None)
    assert len(list(ch.generate(loaded, [5, 6], max_tokens=1, engine=engine, seed=1))) == 2
    with pytest.raises(NotFiniteError, match=MESSAGE):
        list(ch.generate(loaded, [[5, 6], [8, 5]], max_tokens=2, engine=engine))


@pytest.mark.skipif(not engine_runs_here(), reason="the engine does not run here")
def test_keys_that_half_precision_cannot_hold() -> None:
    """The engine caches half precision: what does not fit is refused, not rounded to something."""
    model = decoder(gated=True)
    for name, weight in model.named_parameters():
        if name.endswith(("blocks.0.attention.key.weight", "blocks.0.attention.value.weight")):
            weight.mul_(1e6)
    loaded = Loaded("large", Path(), model, model.config, None)
    with pytest.raises(NotFiniteError, match=MESSAGE):
        list(ch.generate(loaded, [5, 6], engine=True))
    assert len(list(ch.generate(loaded, [5, 6], max_tokens=3, engine=False))) > 1


def test_the_rows_are_named() -> None:
    logits = torch.zeros(3, 5)
    refuse_unsound(logits)
    logits[1, 2] = math.nan
    with pytest.raises(NotFiniteError, match=r"infinite \(rows 1 of the batch\)"):
        refuse_unsound(logits)
    logits[1, 2] = -math.inf  # of one token: fine
    refuse_unsound(logits)


def test_no_choice() -> None:
    logits = torch.zeros(2, 5)
    refuse_no_choice(logits)
    logits[0] = -math.inf
    with pytest.raises(InputError, match="the settings forbid every token"):
        refuse_no_choice(logits)
    logits[0] = math.inf
    with pytest.raises(NotFiniteError, match="penalties or logit_bias make logits infinite"):
        refuse_no_choice(logits)


def test_the_engine_is_really_tried() -> None:
    if engine_runs_here():
        loaded = Loaded("x", Path(), decoder(), decoder().config, None)
        assert type(runner_factory.make_runner(loaded)).__name__ == "EngineRunner"
