"""Total effects: the batch over every head against ablating each by itself; planted circuits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.explain.why import effects as effects_module
from clearhead.explain.why.effects import effects_of, fits
from clearhead.explain.why.make_why import explain, make_why
from clearhead.explain.why.prediction_run import run_for
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def target(loaded: Any, run: Any, token: int, instead: int) -> tuple[float, float]:
    ids = torch.tensor([[one.id for one in run.passage.tokens]])
    with torch.no_grad():
        if run.source is None:
            logits = loaded.model(ids)[0, run.position]
        else:
            source = torch.tensor([[one.id for one in run.source.tokens]])
            logits = loaded.model(source, ids)[0, run.position]
    cap = loaded.config.output_softcap  # parts and effects are those of the sum before it
    raw = logits.double() if cap is None else cap * torch.atanh(logits.double() / cap)
    return float(raw[token] - raw[instead]), float(logits.double().softmax(0)[token])


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "bert-masked", "bart", "t5"])
def test_each_effect_is_that_of_ablating_it_alone(name: str, tiny: Callable[[str], Tiny]) -> None:
    loaded = tiny(name).loaded
    options: dict[str, Any] = {}
    if loaded.config.kind == "encoder-decoder":
        options["source"] = token_ids(7).tolist()
    if loaded.config.kind == "encoder":
        options["position"] = 3
    run = run_for(loaded, token_ids(5).tolist(), **options)
    assert fits(run)
    effects = effects_of(run, explain(run, 13, 29))
    base, probability = target(loaded, run, 13, 29)
    assert effects.target == pytest.approx(base, abs=1e-4)
    assert effects.probability == pytest.approx(probability, abs=1e-5)
    layers = loaded.config.layers
    heads = loaded.config.heads * (2 if "C" in {one.name[0] for one in effects.all} else 1)
    assert len(effects.all) == layers * (heads + 1)
    for one in effects.all:
        with ch.ablate(loaded, one.name):
            without, left = target(loaded, run, 13, 29)
        assert one.total == pytest.approx(base - without, abs=2e-4), one.name
        assert one.probability == pytest.approx(left, abs=1e-5), one.name


def test_the_last_layer_has_no_later_one() -> None:
    """Behind the last layer stands only the final norm, whose scale the ablation changes."""
    why = make_why(random_decoder(layers=1), token_ids(5).tolist(), token=13, instead=29)
    assert why.effects is not None
    assert why.effects.rank_correlation([part.name for part in why.heads]) > 0.8


def test_a_planted_head_is_found_with_its_size() -> None:
    """One head writes a known vector; the output reads exactly that direction."""
    loaded = random_decoder(layers=2, norm="rms")
    block: Any = loaded.model.get_submodule("stack.blocks.1")
    with torch.no_grad():
        loaded.model.get_parameter("stack.embedding.tokens.weight")[:, 0] = 0
        loaded.model.get_parameter("stack.embedding.tokens.weight")[13, 0] = 5
        for number in range(2):
            part: Any = loaded.model.get_submodule(f"stack.blocks.{number}")
            part.attention.output.weight[0] = 0
            part.feed_forward.down.weight[0] = 0
        block.attention.output.weight[0, 2 * 10 : 3 * 10] = 0.7  # only head 2 of layer 1 writes it
    ids = [id for id in token_ids(7).tolist() if id != 13]
    why = make_why(loaded, ids, token=13)
    planted = next(part for part in why.heads if part.name == "L1H2")
    others = loaded.model.get_parameter("stack.embedding.tokens.weight")[13, 1:]
    run = run_for(loaded, ids)
    scale = run.captured.stream[0].square().mean().add(1e-5).rsqrt()
    row = run.captured.sublayers[2].attention
    assert row is not None
    mixed = row.weights[0][2] @ row.head_values(2).double()
    weight = loaded.model.get_parameter("stack.norm.weight").double()
    written = block.attention.output.weight[:, 20:30].double() @ mixed
    expected = float((written * weight * scale)[0] * 5)
    expected += float(others.double() @ (written * weight * scale)[1:])
    assert planted.value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("room", [0, 1])
def test_long_texts_are_not_ablated_unless_asked(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects_module, "MOST_TOKENS", 22 * 11 - 1 + room)  # 22 rows of 11 tokens
    loaded, ids = random_decoder(), token_ids(11).tolist()
    why = make_why(loaded, ids, token=13)
    assert (why.effects is not None) == bool(room) and why.proof.exact
    assert make_why(loaded, ids, token=13, effects=True).effects is not None
