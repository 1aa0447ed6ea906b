"""Ablation: against outputs computed by hand, every kind of place, and the model left as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.interventions.ablate import ablate
from clearhead.text.characters import CharacterTokenizer
from tests.shared.tiny_models import DECODERS, Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def small() -> Loaded:
    config = ch.ModelConfig(
        kind="decoder", vocab=29, context=61, model=42, layers=3, heads=6, kv_heads=2, key_dim=10,
        value_dim=11, feed_forward=67, attention_output_bias=True, sinks=True, window=5,
        window_layers=(False, True, False),
    )  # fmt: skip
    torch.manual_seed(3)
    model = ch.Decoder(config).eval().requires_grad_(False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return Loaded("small", Path(), model, config, CharacterTokenizer("abcdefgh"))


def logits(loaded: Loaded, ids: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        found: Tensor = loaded.model(token_ids(1, 11) % 20 if ids is None else ids)
    return found


def test_a_head_without_its_rows_of_w_o_is_the_same(small: Loaded) -> None:
    """The independent way: the head's columns of W_O set to zero in a copy of the weights."""
    output: Any = small.model.get_submodule("stack.blocks.1.attention.output")
    with ablate(small, "L1H4"):
        ablated = logits(small)
    kept = output.weight.clone()
    with torch.no_grad():
        output.weight[:, 4 * 11 : 5 * 11] = 0
    expected = logits(small)
    with torch.no_grad():
        output.weight.copy_(kept)
    assert torch.allclose(ablated, expected, atol=1e-5)
    assert not torch.allclose(ablated, logits(small), atol=1e-3)


@pytest.mark.parametrize("names", ["L0", "L2F", "L1H0,3", "L0H1:3", ["L0H1", "L2F"]])
def test_outside_the_block_the_model_is_as_it_was(small: Loaded, names: Any) -> None:
    before = logits(small)
    with ablate(small, names):
        assert not torch.equal(logits(small), before)
    assert torch.equal(logits(small), before)
    with pytest.raises(KeyError), ablate(small, names):
        raise KeyError
    assert torch.equal(logits(small), before)


def test_all_edges_of_a_head_together_are_the_head(small: Loaded) -> None:
    ids = token_ids(1, 7) % 20
    with ablate(small, "L2H3"):
        whole = logits(small, ids)
    blocks = [ablate(small, "L2H3", source=position) for position in range(7)]
    for block in blocks:
        block.__enter__()
    try:
        edges = logits(small, ids)
    finally:
        for block in reversed(blocks):
            block.__exit__(None, None, None)
    assert torch.allclose(edges, whole, atol=1e-5)


@pytest.mark.parametrize("layer", [0, 1])  # the second has a window
def test_an_edge_against_the_textbook(small: Loaded, layer: int) -> None:
    """One edge of one query: the change of the layer's output is −weight · v · W_O."""
    ids, head, query, key = token_ids(1, 9) % 20, 5, 6, 4
    attention: Any = small.model.get_submodule(f"stack.blocks.{layer}.attention")
    kept: list[Tensor] = []
    handle = attention.register_forward_hook(lambda _m, _a, output: kept.append(output))
    try:
        with ch.watch(small.model, values=True) as seen:
            logits(small, ids)
        with ablate(small, f"L{layer}H{head}", source=key, query=query):
            logits(small, ids)
    finally:
        handle.remove()
    weight = seen[f"L{layer}H{head}"].weights(query, None)[key]
    record = seen[f"L{layer}H{head}"].record
    assert record.value is not None
    value = record.value[0, head // 3, key]
    removed = -weight * (attention.output.weight[:, head * 11 : (head + 1) * 11] @ value)
    change = kept[1] - kept[0]
    assert weight > 0.01
    assert torch.allclose(change[0, query], removed, atol=1e-5)
    change[0, query] = 0
    assert change.abs().max() < 1e-6


def test_a_source_by_its_text_means_each_occurrence(small: Loaded) -> None:
    assert small.tokenizer is not None
    ids = torch.tensor([small.tokenizer.encode("abcabd", special=False)])
    with ablate(small, "L0H2", source="ab"):
        by_text = logits(small, ids)
    names = [ablate(small, "L0H2", source=place) for place in (0, 1, 3, 4)]
    for block in names:
        block.__enter__()
    try:
        by_place = logits(small, ids)
    finally:
        for block in reversed(names):
            block.__exit__(None, None, None)
    assert torch.allclose(by_text, by_place, atol=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "h"}, r"the source 'h' is in no text\.\nHint: .*with its space"),
        ({"source": "ba"}, r"nothing was ablated: the source 'ba'"),
        ({"source": 99}, r"the source 99 is in no text"),
        ({"source": "ab", "query": 99}, r"is in no text that query 99 reads"),
    ],
)
def test_an_ablation_that_took_nothing_away_is_told(
    small: Loaded, options: dict[str, Any], message: str
) -> None:
    assert small.tokenizer is not None
    ids = torch.tensor([small.tokenizer.encode("abcabd", special=False)])
    with pytest.raises(ch.ClearheadError, match=message), ch.ablate(small, "L0H2", **options):
        logits(small, ids)
    with ch.ablate(small, "L0H2", **options):
        pass  # no text was read
    with ch.ablate(small, "L0H2", source="cd"):  # one of the texts has it
        for text in ("abcabd", "abcd"):
            logits(small, torch.tensor([small.tokenizer.encode(text, special=False)]))
    with pytest.raises(ZeroDivisionError), ch.ablate(small, "L0H2", **options):
        logits(small, ids)
        raise ZeroDivisionError  # an error of the block comes out as it is


def test_cached_steps_are_ablated_as_the_whole_text(small: Loaded) -> None:
    ids = token_ids(1, 8) % 20
    for options in ({}, {"source": 2}, {"source": 2, "query": 6}):
        with ablate(small, "L1H1", **options):  # type: ignore[arg-type]
            whole = logits(small, ids)
            cache = small.model.new_cache()  # type: ignore[operator]
            with torch.no_grad():
                parts = [small.model(part, cache=cache) for part in torch.split(ids, 3, dim=1)]
        assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-5)


def test_the_mean_is_the_mean_over_the_given_texts(small: Loaded) -> None:
    output: Any = small.model.get_submodule("stack.blocks.0.attention.output")
    texts, kept = ["abc", "defgh"], []
    handle = output.register_forward_pre_hook(lambda _m, args: kept.append(args[0][0]))
    assert small.tokenizer is not None
    for text in texts:
        logits(small, torch.tensor([small.tokenizer.encode(text)]))
    handle.remove()
    mean = torch.cat(kept).mean(dim=0)[11:22]
    seen: list[Tensor] = []
    with ablate(small, "L0H1", way="mean", over=texts):
        handle = output.register_forward_hook(lambda _m, args, _o: seen.append(args[0]))
        logits(small)
        handle.remove()
    assert torch.allclose(seen[0][0, :, 11:22], mean.expand(11, -1), atol=1e-6)


@pytest.mark.parametrize("name", [*DECODERS, "bert-masked", "t5", "bart"])
def test_every_family_can_be_ablated(name: str, tiny: Callable[[str], Tiny]) -> None:
    found = tiny(name)
    rows = (token_ids(1, 7), token_ids(1, 5)) if name in ("t5", "bart") else (token_ids(1, 7),)
    with torch.no_grad():
        before = found.ours(*rows)
        places = ["L1H2", "L0F"] + (["E0H1", "C1", "E1F"] if len(rows) == 2 else [])
        for place in places:
            with ablate(found.loaded, place):
                assert not torch.allclose(found.ours(*rows), before, atol=1e-6)
        assert torch.equal(found.ours(*rows), before)


def test_generation_inside_the_block_leaves_the_engine() -> None:
    loaded = ch.load("dates")

    def written(**options: Any) -> str:
        events = ch.generate(loaded, "3rd of March 2021", max_tokens=12, **options)
        return "".join(event.text for event in events)

    whole = written()
    with ablate(loaded, "C0"):
        without = written()
        assert without != whole
        assert written(engine=False) == without
        with pytest.raises(ch.ClearheadError, match="engine does not support"):
            written(engine=True)
    assert written() == whole


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ("L9", {}, r"L9: this model has no layer L9"),
        ("L9F", {}, r"no layer L9"),
        ("L0H6", {}, r"L0H6: this layer has 6 heads, 0 … 5"),
        ("rubbish", {}, r"is no name of a head[^\n]*\nHint: layers: L0 … L2$"),
        ([], {}, r"heads names no head"),
        ("L0", {"way": "none"}, r"way must be one of 'zero', 'mean'; got 'none'"),
        ("L0", {"source": "a", "way": "mean"}, r"source takes single edges away"),
        ("L0", {"source": -1}, r"source must be a whole number of 0 or more|source must"),
        ("L0", {"source": 1.5}, r"source is a text or a position; got float"),
        ("L0", {"query": 3}, r"query chooses among edges: it needs a source"),
        ("L0", {"way": "mean", "over": []}, r"over is a text or several"),
        ("L0F", {"source": 3}, r"edges are those of heads"),
    ],
)
def test_bad_arguments_are_explained(
    small: Loaded, names: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ch.ClearheadError, match=message), ch.ablate(small, names, **options):
        pass


@pytest.mark.usefixtures("unchecked")
def test_only_loaded_models_are_taken(small: Loaded) -> None:
    with pytest.raises(ch.ClearheadError, match=r"wants a model of ch\.load; got Decoder"):
        ch.ablate(small.model, "L0").__enter__()  # type: ignore[arg-type]
