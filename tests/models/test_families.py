"""Every family against transformers: logits, padding, cache, greedy tokens, saving."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.errors import CheckpointError
from clearhead.models.build import build
from clearhead.models.families import family_of
from tests.shared.tiny_models import (
    ALL,
    DECODERS,
    ENCODER_DECODERS,
    ENCODERS,
    LABELS,
    Tiny,
    assert_same,
    padded,
    standing,
    token_ids,
)

Models = Callable[[str], Tiny]
LENGTHS = (13, 5, 8)
GREEDY, PENALTY = 64, 3.0


def their_logits(tiny: Tiny, *args: Any, **kwargs: Any) -> Tensor:
    output = tiny.theirs(*args, **kwargs)
    logits: Tensor = output.last_hidden_state if "logits" not in output else output.logits
    return logits


def inputs_of(name: str, seed: int = 0) -> tuple[Tensor, ...]:
    if name in ENCODER_DECODERS:
        return token_ids(3, 13, seed=seed), token_ids(3, 11, seed=seed)
    return (token_ids(3, 13, seed=seed),)


def theirs_of(tiny: Tiny, inputs: tuple[Tensor, ...]) -> Tensor:
    names = ("input_ids", "decoder_input_ids")
    return their_logits(tiny, **dict(zip(names, inputs, strict=False)))


@pytest.mark.parametrize("name", ALL)
def test_logits_are_the_same(tiny: Models, name: str) -> None:
    model, inputs = tiny(name), inputs_of(name)
    wanted = theirs_of(model, inputs)
    assert wanted.std() > 0.2  # a comparison of nearly nothing would prove nothing
    assert_same(model.ours(*inputs), wanted)


@pytest.mark.parametrize("name", ALL)
def test_running_changes_nothing(tiny: Models, name: str) -> None:
    model, inputs = tiny(name), inputs_of(name)
    before = {name: tensor.clone() for name, tensor in model.ours.state_dict().items()}
    first = model.ours(*inputs)
    assert torch.equal(model.ours(*inputs), first)
    after = model.ours.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not model.ours.training
    assert not any(parameter.requires_grad for parameter in model.ours.parameters())


# Decoders


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", DECODERS)
def test_decoder_with_padding(tiny: Models, name: str, side: str) -> None:
    model = tiny(name)
    ids, real = padded(LENGTHS, side)
    wanted = their_logits(
        model, ids, attention_mask=real.long(), position_ids=standing(real), use_cache=False
    )
    got = model.ours(ids, real=real)
    assert_same(got[real], wanted[real])
    for row in range(len(LENGTHS)):
        alone = model.ours(ids[row][real[row]][None])
        assert_same(got[row][real[row]], alone[0])
    last = model.ours(ids, real=real, last_only=True)
    for row in range(len(LENGTHS)):
        assert_same(last[row, 0], got[row][real[row]][-1])


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_with_cache(tiny: Models, name: str) -> None:
    model, ids = tiny(name), token_ids(2, 17)
    whole = their_logits(model, ids, use_cache=False)
    cache, parts, start = model.ours.new_cache(), [], 0
    for size in (6, 1, 7, 1, 1, 1):  # longer than the windows, and single tokens between
        parts.append(model.ours(ids[:, start : start + size], cache=cache))
        start += size
        assert cache.length == start
    assert_same(torch.cat(parts, dim=1), whole)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", DECODERS)
def test_decoder_with_uneven_cache(tiny: Models, name: str, side: str) -> None:
    model = tiny(name)
    prompt, prompt_real = padded(LENGTHS, side, width=14)
    middle, middle_real = padded((2, 4, 1), side)
    tail = token_ids(3, 2, seed=5)
    cache = model.ours.new_cache(capacity=3)
    first = model.ours(prompt, real=prompt_real, cache=cache)
    assert cache.lengths.tolist() == list(LENGTHS)
    second = model.ours(middle, real=middle_real, cache=cache)
    steps = [model.ours(tail[:, i : i + 1], cache=cache) for i in range(2)]
    assert cache.lengths.tolist() == [17, 11, 11]
    for row in range(3):
        real = (prompt[row][prompt_real[row]], middle[row][middle_real[row]], tail[row])
        alone = model.ours(torch.cat(real)[None])[0]
        mine = (first[row][prompt_real[row]], second[row][middle_real[row]])
        assert_same(torch.cat([*mine, *(step[row] for step in steps)]), alone)


def next_token(logits: Tensor, seen: Tensor) -> Tensor:
    """The best token, those seen already held back: tiny models would repeat one for ever."""
    row = logits[:, -1]
    held_back = torch.where(row > 0, row / PENALTY, row * PENALTY)
    was_seen = torch.zeros_like(row).scatter(1, seen, 1.0).bool()
    return torch.where(was_seen, held_back, row).argmax(-1, keepdim=True)


def greedy(model: Any, ids: Tensor, real: Tensor | None = None) -> Tensor:
    cache = model.new_cache()
    logits = model(ids, real=real, cache=cache, last_only=True)
    tokens = ids
    for _ in range(GREEDY):
        tokens = torch.cat([tokens, next_token(logits, tokens)], dim=1)
        logits = model(tokens[:, -1:], cache=cache)
    return tokens[:, ids.shape[1] :]


def generated(theirs: Any, ids: Tensor, *, cached: bool = True, **more: Any) -> Tensor:
    from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False, max_new_tokens=GREEDY, min_new_tokens=GREEDY, pad_token_id=3,
        eos_token_id=None, bos_token_id=None, repetition_penalty=PENALTY, use_cache=cached, **more,
    )  # fmt: skip
    tokens: Tensor = theirs.generate(ids, generation_config=settings)
    return tokens


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_writes_the_same_64_tokens(tiny: Models, name: str) -> None:
    model, ids = tiny(name), token_ids(2, 7)
    wanted = generated(model.theirs, ids)[:, 7:]
    got = greedy(model.ours, ids)
    assert torch.equal(got, wanted)
    assert len(set(got[0].tolist())) > 7  # not one token over and over


# Encoders


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ENCODERS)
def test_encoder_with_padding(tiny: Models, name: str, side: str) -> None:
    model = tiny(name)
    ids, real = padded(LENGTHS, side)
    got = model.ours(ids, real=real)
    per_token = got.ndim == 3
    if side == "right":
        wanted = their_logits(model, ids, attention_mask=real.long())
        assert_same(got[real] if per_token else got, wanted[real] if per_token else wanted)
    for row in range(len(LENGTHS)):
        alone = theirs_of(model, (ids[row][real[row]][None],))[0]
        assert_same(got[row][real[row]] if per_token else got[row], alone)


@pytest.mark.parametrize("name", ["bert", "bert-masked", "bert-labels"])
def test_segments(tiny: Models, name: str) -> None:
    model, ids = tiny(name), token_ids(2, 13)
    segments = (torch.arange(13) // 5)[None].repeat(2, 1)
    wanted = their_logits(model, ids, token_type_ids=segments)
    assert_same(model.ours(ids, segments=segments), wanted)
    assert not torch.allclose(model.ours(ids), wanted, atol=1e-3)
    real = torch.ones(2, 13).bool()
    real[1, :4] = False
    got = model.ours(ids, real=real, segments=segments)[1]
    alone = their_logits(model, ids[1:, 4:], token_type_ids=segments[1:, 4:])[0]
    assert_same(got[4:] if got.ndim == 2 else got, alone)


# Encoder-decoders


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_decoder_with_padding(tiny: Models, name: str, side: str) -> None:
    model = tiny(name)
    source, source_real = padded(LENGTHS, side)
    target, target_real = padded((4, 11, 7), side, width=12)
    got = model.ours(source, target, source_real=source_real, target_real=target_real)
    if side == "right":
        wanted = their_logits(
            model, input_ids=source, attention_mask=source_real.long(), decoder_input_ids=target
        )
        assert_same(got[target_real], wanted[target_real])
    for row in range(len(LENGTHS)):
        alone = (source[row][source_real[row]][None], target[row][target_real[row]][None])
        assert_same(got[row][target_real[row]], theirs_of(model, alone)[0])


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_decoder_with_cache(tiny: Models, name: str) -> None:
    model, (source, target) = tiny(name), inputs_of(name)
    wanted = theirs_of(model, (source, target))
    cache, parts, start = model.ours.new_cache(), [], 0
    states, counts = model.ours.encode(source)
    for size in (4, 1, 5, 1):
        step = target[:, start : start + size]
        given = (states, counts) if start == 0 else ()  # the cache knows the source afterwards
        parts.append(model.ours.decode(step, *given, cache=cache))
        start += size
    assert_same(torch.cat(parts, dim=1), wanted)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_decoder_with_uneven_cache(tiny: Models, name: str, side: str) -> None:
    model = tiny(name)
    source, source_real = padded(LENGTHS, side)
    prompt, prompt_real = padded((2, 6, 5), side, width=7)
    tail = token_ids(3, 3, seed=5)
    cache = model.ours.new_cache()
    states, counts = model.ours.encode(source, real=source_real)
    first = model.ours.decode(prompt, states, counts, real=prompt_real, cache=cache)
    steps = [model.ours.decode(tail[:, i : i + 1], cache=cache) for i in range(3)]
    for row in range(3):
        target = torch.cat([prompt[row][prompt_real[row]], tail[row]])[None]
        alone = theirs_of(model, (source[row][source_real[row]][None], target))[0]
        mine = torch.cat([first[row][prompt_real[row]], *(step[row] for step in steps)])
        assert_same(mine, alone)


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_decoder_writes_the_same_64_tokens(tiny: Models, name: str) -> None:
    model, source = tiny(name), token_ids(2, 9)
    start = model.loaded.config.start
    assert start is not None
    # transformers' cache of T5 goes by the number of encoder layers: here it is left out.
    wanted = generated(model.theirs, source, cached=False, decoder_start_token_id=start)[:, 1:]
    cache, tokens = model.ours.new_cache(), torch.full((2, 1), start)
    states, counts = model.ours.encode(source)
    for step in range(GREEDY):
        given = (states, counts) if step == 0 else ()
        logits = model.ours.decode(tokens[:, -1:], *given, cache=cache)
        tokens = torch.cat([tokens, next_token(logits, tokens)], dim=1)
    assert torch.equal(tokens[:, 1:], wanted)
    assert len(set(tokens[0].tolist())) > 7


# Descriptions and files


@pytest.mark.parametrize("name", ALL)
def test_config_survives_being_written(tiny: Models, name: str) -> None:
    model = tiny(name)
    family = family_of(json.loads((model.folder / "config.json").read_text()))
    config = model.loaded.config
    written = json.loads(json.dumps(family.write(config)))
    assert family.read(written) == config
    assert type(config).from_json(config.to_json()) == config


@pytest.mark.parametrize("name", ALL)
def test_transformers_loads_what_we_save(tiny: Models, name: str, tmp_path: Path) -> None:
    model, inputs = tiny(name), inputs_of(name)
    folder = ch.save(model.loaded.model, tmp_path / "saved")
    back, info = type(model.theirs).from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    allowed = {"pooler.dense.weight", "pooler.dense.bias"}  # of the bare BERT, which nothing uses
    assert set(info["missing_keys"]) <= allowed
    assert not info["unexpected_keys"]
    again = Tiny(name, folder, back.eval(), ch.load(folder))
    assert_same(theirs_of(again, inputs), theirs_of(model, inputs))
    assert torch.equal(again.ours(*inputs), model.ours(*inputs))
    assert again.loaded.config == model.loaded.config
    assert back.config.id2label == model.theirs.config.id2label


@pytest.mark.parametrize("name", ["bert-labels", "distilbert-labels"])
def test_labels_have_names(tiny: Models, name: str, tmp_path: Path) -> None:
    model = tiny(name)
    assert model.loaded.config.label_names == tuple(LABELS.values())
    unnamed = build(model.loaded.config.changed(label_names=()))
    assert ch.load(ch.save(unnamed, tmp_path / "saved")).config.label_names[4] == "LABEL_4"
    fields = json.loads((model.folder / "config.json").read_text())
    written = family_of(fields).write(model.loaded.config)
    assert written["label2id"] == {name: number for number, name in LABELS.items()}
    assert family_of(fields).read(fields | {"id2label": None}).labels == 2  # as in transformers
    for wrong in (["joy"], 7, {"1": "joy"}, {"0": "joy", "2": "love"}, {"0": 5}):
        with pytest.raises(CheckpointError, match=r'id2label must name the labels "0", "1", …'):
            family_of(fields).read(fields | {"id2label": wrong})


@pytest.mark.parametrize("name", ALL)
def test_our_own_format_holds_every_family(tiny: Models, name: str, tmp_path: Path) -> None:
    model, inputs = tiny(name), inputs_of(name)
    own = type(model.ours)(model.loaded.config.changed(family="clearhead")).eval()
    own.load_state_dict(model.ours.state_dict())
    again = ch.load(ch.save(own, tmp_path / "own"))
    assert again.config.family == "clearhead"
    assert torch.equal(again.model(*inputs), model.ours(*inputs))


def older(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The same description as years ago: no layer_types, rotary settings in fields of their own."""
    fields = {key: value for key, value in fields.items() if key != "layer_types"}
    rope = fields.pop("rope_parameters")
    if name == "gemma3":
        local = rope["sliding_attention"]["rope_theta"]
        fields |= {"rope_local_base_freq": local, "sliding_window_pattern": 6}
        rope = rope["full_attention"]
    scaling = {key: value for key, value in rope.items() if key not in ("rope_theta", "rope_type")}
    if rope["rope_type"] != "default":
        key = "type" if name == "llama-linear" else "rope_type"
        fields["rope_scaling"] = {key: rope["rope_type"], **scaling}
    return fields | {"rope_theta": rope["rope_theta"]}


@pytest.mark.parametrize("name", [name for name in DECODERS if name != "gpt2"])
def test_older_descriptions_say_the_same(tiny: Models, name: str) -> None:
    model = tiny(name)
    fields = older(name, json.loads((model.folder / "config.json").read_text()))
    assert "rope_parameters" not in fields and "layer_types" not in fields
    assert family_of(fields).read(fields) == model.loaded.config


@pytest.mark.parametrize("name", ["mistral", "qwen2", "gemma2", "gemma3", "gpt2", "bert", "t5"])
def test_what_a_description_leaves_out_is_as_in_transformers(tiny: Models, name: str) -> None:
    """Fields that have transformers' default may be absent from a config.json."""
    model = tiny(name)
    config = type(model.theirs.config)()
    whole = config.to_dict()
    family = family_of(whole)
    # Sizes are always there; head_dim and the like too, wherever they are not worked out.
    sizes = {key: value for key, value in whole.items() if isinstance(value, int) and value > 9}
    kept = {"model_type": whole["model_type"], **sizes}
    for key in ("num_attention_heads", "num_hidden_layers", "num_key_value_heads", "num_heads",
                "num_layers", "head_dim", "sliding_window"):  # fmt: skip
        if key in whole and (key != "sliding_window" or name == "qwen2"):
            kept[key] = whole[key]
    for key in ("sliding_window", "query_pre_attn_scalar", "rope_theta"):
        if name != "qwen2":
            kept.pop(key, None)
    wanted = family.read({key: value for key, value in whole.items() if value is not None
                          or key in ("attn_logit_softcapping", "final_logit_softcapping",
                                     "sliding_window")})  # fmt: skip
    tokens = {"bos": None, "eos": (), "pad": None, "start": None, "dropout": 0.0}
    assert family.read(kept).changed(**tokens) == wanted.changed(**tokens)
