"""A prediction as a sum: every family, every option of a config, positions, sources, errors."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.parts import Why
from tests.shared.explained_models import falsify_a_weight, random_decoder
from tests.shared.tiny_models import ALL, DECODERS, ENCODER_DECODERS, Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")
PREDICTING = [*DECODERS, "bert-masked", "distilbert-masked", *ENCODER_DECODERS]


def explained(loaded: Loaded, length: int = 11, **options: Any) -> Why:
    ids = token_ids(length)
    if loaded.config.kind == "encoder-decoder":
        options["source"] = token_ids(7).tolist()
    if loaded.config.kind == "encoder":
        options.setdefault("position", 5)
    return make_why(loaded, ids.tolist(), effects=False, **options)


def own_logits(loaded: Loaded, why: Why, length: int = 11) -> Any:
    ids = token_ids(1, length)
    with torch.no_grad():
        if loaded.config.kind == "encoder-decoder":
            start = torch.tensor([[loaded.config.start]])
            target = torch.cat([start, ids], dim=1)
            return loaded.model(token_ids(1, 7), target)[0, why.position]
        return loaded.model(ids)[0, why.position]


@pytest.mark.parametrize("name", PREDICTING)
def test_the_parts_add_up_to_the_logits_of_every_family(
    name: str, tiny: Callable[[str], Tiny]
) -> None:
    loaded = tiny(name).loaded
    for token, instead in ((13, None), (17, 29)):
        why = explained(loaded, token=token, instead=instead)
        assert why.proof.exact, why.proof
        logits = own_logits(loaded, why)
        if (cap := why.softcap) is None:
            wanted = float(logits[token]) - (0.0 if instead is None else float(logits[instead]))
            assert why.total == pytest.approx(wanted, rel=1e-4, abs=1e-4)
        elif instead is None:
            assert cap * torch.tanh(torch.tensor(why.total / cap)) == pytest.approx(
                float(logits[token]), rel=1e-4
            )
        parts = [part.value for part in why.heads]
        rest = [value for _, value in (*why.feed_forwards, *why.embedding, *why.biases)]
        assert sum(parts) + sum(rest) == pytest.approx(why.total, rel=1e-9, abs=1e-9)
        assert why.layers[-1].sum == pytest.approx(why.total, rel=1e-9, abs=1e-9)
        for part in why.heads:
            assert sum(one.value for one in part.sources) == pytest.approx(part.value, abs=1e-9)


def test_every_family_that_predicts_is_walked_over() -> None:
    others = {"bert", "bert-labels", "distilbert", "distilbert-labels"}
    assert set(ALL) - set(PREDICTING) == others


GRID = list(
    product(["before", "after", "around"], ["layer", "rms"], ["rotary", "learned", "alibi"])
)


@pytest.mark.parametrize(("place", "norm", "positions"), GRID)
def test_the_parts_add_up_for_every_kind_of_norm_and_position(
    place: Any, norm: Any, positions: Any
) -> None:
    everything = {
        "attention_bias": True, "attention_output_bias": True, "feed_forward_bias": True,
        "output_bias": True, "tied": False, "gated": True, "kv_heads": 2, "value_dim": 11,
        "sinks": True, "attention_norm": True, "attention_softcap": 5.0, "embedding_norm": True,
        "embedding_scale": 1.7, "output_scale": 0.6, "output_softcap": 9.0, "window": 4,
        "window_layers": (True, False, True),
    }  # fmt: skip
    options = {"norm_place": place, "norm": norm, "positions": positions}
    for changes in ({}, everything):
        why = explained(random_decoder(**options | changes), token=13, instead=29)
        assert why.proof.exact, why.proof


@pytest.mark.parametrize(
    "change",
    [
        {"norm_offset": True}, {"positions": "sinusoidal"}, {"positions": "relative"},
        {"positions": "none"}, {"activation": "relu"}, {"heads": 7, "kv_heads": 1}, {"layers": 1},
    ],
    ids=str,
)  # fmt: skip
def test_the_parts_add_up_with_one_option_changed(change: dict[str, Any]) -> None:
    assert explained(random_decoder(**change), token=13).proof.exact


@pytest.mark.parametrize("position", [0, 3, 10])
def test_a_position_is_explained_by_what_stands_before_it(position: int) -> None:
    loaded = random_decoder()
    why = explained(loaded, token=13, position=position)
    assert why.total == pytest.approx(float(own_logits(loaded, why)[13]), rel=1e-4)
    assert {one.column for one in why.sources} == set(range(position + 1))


def test_a_logit_near_zero_is_proved_like_any_other() -> None:
    """Its terms are as large as those of other logits, and so is their rounding."""
    loaded = random_decoder(tied=False)
    logits = own_logits(loaded, explained(loaded, token=13))
    least = int(logits.abs().argmin())
    head: Any = loaded.model.head
    with torch.no_grad():  # the row that is nearest to 0 is brought closer still
        seen: list[torch.Tensor] = []
        handle = head.register_forward_pre_hook(lambda _module, args: seen.append(args[0]))
        own_logits(loaded, explained(loaded, token=13))
        handle.remove()
        final = seen[-1][0, -1]
        head.weight[least] -= (head.weight[least] @ final) / final.square().sum() * final
    why = explained(loaded, token=least)
    assert abs(why.total) < 1e-4
    assert why.proof.exact, why.proof
    assert explained(loaded, token=least, instead=13).proof.exact


def test_a_falsified_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    falsify_a_weight(monkeypatch)
    assert not explained(random_decoder(), token=13).proof.exact


def test_one_head_by_hand() -> None:
    """One layer, one head, identity matrices: the parts can be computed on paper."""
    config = ch.ModelConfig(
        kind="decoder", vocab=3, context=8, model=2, layers=1, heads=1, feed_forward=1,
        positions="none", norm="rms", tied=False,
    )  # fmt: skip
    model = ch.Decoder(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.stack.embedding.tokens.weight.copy_(torch.tensor([[1.0, 1.0], [1.0, -1.0], [0, 0]]))
        block: Any = model.stack.blocks[0]
        block.attention_residual.before.weight.fill_(1)
        block.attention.value.weight.copy_(torch.eye(2))
        block.attention.output.weight.copy_(torch.eye(2))
        model.stack.norm.weight.fill_(1)  # type: ignore[union-attr, operator]
        model.head.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0, 0]]))  # type: ignore[union-attr]
    why = make_why(Loaded("by hand", Path(), model, config, None), [0, 1], token=0)
    # Scores are 0, so both words have weight ½; values are (1, 1) and (1, −1) once normalised.
    # The stream ends as (1, −1) + ½·(1, 1) + ½·(1, −1) = (2, −1); its root mean square is √2.5.
    scale = 2.5**-0.5
    assert why.total == pytest.approx(2 * scale, rel=1e-4)
    assert dict(why.embedding)["token"] == pytest.approx(scale, rel=1e-4)
    assert [one.value for one in why.heads[0].sources] == pytest.approx([scale / 2] * 2, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": 97}, r"token 97: this vocabulary has ids 0 … 96"),
        ({"token": -1}, r"token -1"),
        ({"token": "x"}, r"came without a tokenizer"),
        ({"token": 5, "instead": 5}, r"are the same token"),
        ({"position": 11}, r"words 0 … 10"),
        ({"source": [5]}, r"a source is for encoder-decoders"),
    ],
)
def test_bad_arguments_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ch.ClearheadError, match=message):
        explained(random_decoder(), **options)


def test_tokens_are_refused_before_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("it ran")

    monkeypatch.setattr("clearhead.explain.why.make_why.run_for", fail)
    for options in ({"token": 97}, {"instead": "x"}, {"token": 5, "instead": 5}):
        with pytest.raises(ch.ClearheadError):
            explained(random_decoder(), **options)


@pytest.mark.parametrize("name", ["bert", "bert-labels"])
def test_models_that_predict_no_tokens_are_refused(name: str, tiny: Callable[[str], Tiny]) -> None:
    with pytest.raises(ch.ClearheadError, match="predicts no tokens: it is an encoder"):
        explained(tiny(name).loaded, token=5)


def test_a_text_of_several_tokens_is_shown_split() -> None:
    with pytest.raises(ch.ClearheadError, match=r"is 2 tokens here: '0', '3'"):
        make_why(ch.load("dates"), "2021-", source="3rd of March 2021", token="03")


def test_the_encoders_words_are_sources_of_cross_attention() -> None:
    why = make_why(ch.load("dates"), "2021-", source="3rd of March 2021")
    assert why.token.text == "0" and why.proof.exact
    cross = [part for part in why.heads if part.name.startswith("C")]
    assert {one.text for part in cross for one in part.sources} == {"source"}
    assert cross[0].sources[0].mark.text == "March"


def test_why_is_frozen() -> None:
    why = explained(random_decoder(), token=13)
    with pytest.raises(dataclasses.FrozenInstanceError):
        why.total = 0.0  # type: ignore[misc]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_heads_have_the_parts_that_the_other_librarys_tensors_give(
    name: str, tiny: Callable[[str], Tiny]
) -> None:
    """Direct logit attribution by hand: inputs of W_O and of the final norm in transformers."""
    made = tiny(name)
    layers: Any = made.theirs.transformer.h if name == "gpt2" else made.theirs.model.layers
    outputs = [one.attn.c_proj if name == "gpt2" else one.self_attn.o_proj for one in layers]
    norm: Any = made.theirs.transformer.ln_f if name == "gpt2" else made.theirs.model.norm
    kept: dict[Any, torch.Tensor] = {}
    for module in (*outputs, norm):
        module.register_forward_hook(
            lambda m, args, _: kept.__setitem__(m, args[0][0, -1].double())
        )
    with torch.no_grad():
        made.theirs(token_ids(1, 11))
        head = made.theirs.lm_head.weight.double()
        direction = (head[13] - head[29]) * norm.weight.double()
        stream = kept[norm]
        if name == "gpt2":
            scale = (stream.var(correction=0) + norm.eps).rsqrt()
            direction = (direction - direction.mean()) * scale
        else:
            direction = direction * (stream.square().mean() + norm.variance_epsilon).rsqrt()
        why = explained(made.loaded, token=13, instead=29)
        heads, parts = made.loaded.config.heads, {part.name: part.value for part in why.heads}
        for layer, module in enumerate(outputs):
            weight = module.weight.double()
            read = (weight @ direction) if name == "gpt2" else (direction @ weight)
            by_head = (kept[module] * read).view(heads, -1).sum(dim=1).tolist()
            for number, expected in enumerate(by_head):
                assert parts[f"L{layer}H{number}"] == pytest.approx(expected, abs=1e-5)


ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT / "build" / "bench-transformer-lens" / "ready").exists(),
    reason="python benchmarks/why.py --only agreement makes TransformerLens' environment",
)
def test_heads_have_the_parts_that_transformer_lens_gives() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "why.py"), "--only", "agreement"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    apart = re.findall(r"^\| (gpt2|llama) \|.*\| (\S+) \|$", done.stdout, re.MULTILINE)
    assert [name for name, _ in apart] == ["gpt2", "llama"]
    assert all(float(difference) < 1e-5 for _, difference in apart)
