from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.attention.rotary import FactorScaling, LinearScaling, Llama3Scaling, YarnScaling
from clearhead.errors import ConfigError
from clearhead.models.build import build
from clearhead.models.config import ModelConfig

SMALL: dict[str, Any] = {
    "kind": "decoder", "vocab": 11, "context": 13, "model": 10, "layers": 3, "heads": 5,
    "feed_forward": 7,
}  # fmt: skip


def config(**changes: Any) -> ModelConfig:
    return ModelConfig.from_fields(SMALL | changes)


def test_defaults_are_worked_out() -> None:
    small = config(kv_heads=1)
    assert small.head_width == 2
    assert config(key_dim=4).head_width == 4
    assert small.rotary is not None and small.rotary.width == 2
    assert config(positions="none").rotary is None


def test_windows_and_their_rotary_base() -> None:
    marks = config(window=3, window_layers=(True, False, True), window_rotary_base=7.0)
    assert [marks.windowed(layer) for layer in range(3)] == [True, False, True]
    assert [marks.rotary_of(layer).base for layer in range(3)] == [7.0, 10_000.0, 7.0]  # type: ignore[union-attr]
    assert all(config(window=3).windowed(layer) for layer in range(3))
    assert not any(config().windowed(layer) for layer in range(3))


def test_it_cannot_be_changed_but_copied() -> None:
    small = config()
    with pytest.raises(AttributeError):
        small.model = 20  # type: ignore[misc]
    assert small.changed(model=20).model == 20
    assert small.model == 10
    with pytest.raises(ConfigError, match="a model has no colour"):
        small.changed(colour=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "both"}, "kind must be one of encoder, decoder, encoder-decoder; got 'both'"),
        ({"head": 3}, "head must be one of language"),
        ({"positions": ["rotary"]}, "positions must be one of"),
        ({"activation": "tanh"}, "activation must be one of relu"),
        ({"norm": "batch"}, "norm must be one of layer, rms"),
        ({"norm_place": "beside"}, "norm_place must be one of before, after, around"),
        ({"model": 10.0}, "model must be a whole number; got 10.0"),
        ({"model": True}, "model must be a whole number; got True"),
        ({"model": "10"}, "model must be a whole number; got '10'"),
        ({"model": None}, "model must be given"),
        ({"heads": 0}, "heads must be 1 or more; got 0"),
        ({"layers": -2}, "layers must be 1 or more; got -2"),
        ({"vocab": -1}, "vocab must be 1 or more"),
        ({"window": 0}, "window must be 1 or more"),
        ({"segments": -1}, "segments must be 0 or more"),
        ({"position_offset": -1}, "position_offset must be 0 or more"),
        ({"relative_buckets": 3}, "relative_buckets must be 4 or more"),
        ({"heads": 3}, "width of 10 cannot be divided into 3 heads"),
        ({"kv_heads": 2}, "5 heads cannot share 2 key/value heads evenly"),
        ({"norm_epsilon": 0.0}, "norm_epsilon must be above 0"),
        ({"norm_epsilon": "small"}, "norm_epsilon must be a finite number; got 'small'"),
        ({"norm_epsilon": float("nan")}, "norm_epsilon must be a finite number; got nan"),
        ({"dropout": 1.0}, "dropout must be from 0 up to below 1"),
        ({"attention_dropout": -0.1}, "attention_dropout must be from 0 up to below 1; got -0.1"),
        ({"activation_dropout": 1.5}, "activation_dropout must be from 0 up to below 1"),
        ({"shared_embedding": False}, "gives an encoder-decoder two token embeddings; a model of"),
        (
            {"window_rotary_scaling": {"kind": "linear", "factor": 2.0}},
            "belongs to window_rotary_base, which is not given",
        ),
        ({"rotary_base": float("inf")}, "rotary_base must be a finite number"),
        ({"rotary_base": 1.0}, "base of rotary positions must be above 1"),
        ({"tied": 1}, "tied must be true or false; got 1"),
        ({"tied": None}, "tied must be given"),
        ({"family": 5}, "family must be text"),
        ({"eos": 5}, "eos must be a list, each entry a whole number; got 5"),
        ({"eos": [1, "2"]}, "eos must be a list, each entry a whole number"),
        ({"window": 3, "window_layers": [1, 0, 1]}, "each entry true or false; got"),
        ({"window": 3, "window_layers": [True]}, "marks each of the 3 layers; got 1 marks"),
        ({"attention_softcap": -1.0}, "attention_softcap must be above 0"),
        ({"encoder_layers": 2}, "encoder_layers belongs to an encoder-decoder"),
        ({"kind": "encoder-decoder"}, "encoder_layers belongs to an encoder-decoder"),
        ({"kind": "encoder"}, "an encoder sees the whole text"),
        ({"kind": "encoder", "head": "classification"}, "needs labels of 1 or more; got 0"),
        (
            {"kind": "encoder", "head": "classification", "labels": 3, "label_names": ["yes"]},
            "names each of the 3 labels; got 1 names",
        ),
        ({"label_names": [1]}, "label_names must be a list, each entry text; got"),
        ({"positions": "sinusoidal", "model": 15}, "model must be even; got 15"),
        ({"positions": "relative", "relative_distance": 16}, "relative_distance must be above 16"),
        ({"key_dim": 3}, "width must be even; got 3"),
        ({"rotary_scaling": {"kind": "magic"}}, "rotary_scaling must be an object with a kind of"),
        ({"rotary_scaling": {"kind": "linear"}}, "rotary_scaling: .*factor"),
        ({"rotary_scaling": {"kind": "linear", "factor": 0}}, "factor must be a number above 0"),
        ({"rotary_scaling": {"kind": "linear", "factor": "2"}}, "factor must be a number above 0"),
        ({"rotary_scaling": {"kind": "factors", "factors": [1, 2]}}, "each of 1 pairs; got 2"),
        (
            {"rotary_scaling": {"kind": "llama3", "factor": 2, "original_context": 9,
                                "low_frequency_factor": 4}},
            "low_frequency_factor must be below",
        ),
        ({"colour": 1, "smell": 2}, "a model has no colour, smell"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(unchecked: None, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**changes)


def test_scalings_of_both_kinds_of_layers_survive_json() -> None:
    scaled = config(
        key_dim=4, rotary_scaling={"kind": "linear", "factor": 3.0}, window=5,
        window_rotary_base=300.0,
        window_rotary_scaling={"kind": "yarn", "factor": 2.0, "original_context": 7},
    )  # fmt: skip
    assert ModelConfig.from_json(scaled.to_json()) == scaled
    assert scaled.rotary_of(0) is not None
    assert scaled.rotary_of(0).scaling == YarnScaling(2.0, 7)  # type: ignore[union-attr]
    assert scaled.changed(window=None).rotary_of(0).scaling == LinearScaling(3.0)  # type: ignore[union-attr]


def test_window_marks_of_an_encoder_decoder() -> None:
    with pytest.raises(ConfigError, match="encoder and decoder alike"):
        config(
            kind="encoder-decoder", encoder_layers=5, window=3, window_layers=(True, False, True)
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object; got list"),
        ("{}", "incomplete"),
        (json.dumps(SMALL | {"depth": 2}), "a model has no depth"),
    ],
)
def test_broken_json(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_json(text)


def test_defaults_are_left_out_of_the_json() -> None:
    assert json.loads(config().to_json()) == SMALL


SCALINGS = [
    None,
    LinearScaling(3.0),
    Llama3Scaling(8.0, 17, 1.5, 3.5),
    YarnScaling(4.0, 19, 31.0, 2.0, 1.25, False),
    FactorScaling((1.0, 2.5, 7.0)),
]


@st.composite
def descriptions(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["encoder", "decoder", "encoder-decoder"]))
    kv_heads, layers = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    window = draw(st.none() | st.integers(1, 9))
    marks = draw(st.none() | st.tuples(*[st.booleans()] * layers)) if window else None
    numbers = st.floats(0.01, 100.0)
    return {
        "kind": kind,
        "head": "masked" if kind == "encoder" else "language",
        "vocab": draw(st.integers(1, 10**6)),
        "context": draw(st.integers(1, 10**6)),
        "model": 2 * draw(st.integers(1, 99)),
        "layers": layers,
        "encoder_layers": layers if kind == "encoder-decoder" else None,
        "kv_heads": kv_heads,
        "heads": kv_heads * draw(st.integers(1, 3)),
        "key_dim": 6,
        "feed_forward": draw(st.integers(1, 99)),
        "positions": draw(st.sampled_from(["rotary", "learned", "alibi", "relative", "none"])),
        "rotary_scaling": draw(st.sampled_from(SCALINGS)),
        "window": window,
        "window_layers": marks,
        "attention_softcap": draw(st.none() | numbers),
        "norm_epsilon": draw(numbers),
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "norm_place": draw(st.sampled_from(["before", "after", "around"])),
        "tied": draw(st.booleans()),
        "gated": draw(st.booleans()),
        "output_scale": draw(numbers),
        "eos": draw(st.lists(st.integers(0, 99), max_size=3).map(tuple)),
        "bos": draw(st.none() | st.integers(0, 99)),
    }


@given(descriptions())
def test_json_says_everything(fields: dict[str, Any]) -> None:
    made = ModelConfig(**fields)
    assert ModelConfig.from_json(made.to_json()) == made


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ANYTHING = PLAIN | st.lists(PLAIN) | st.dictionaries(st.text(), PLAIN)


@given(st.dictionaries(st.sampled_from(list(ModelConfig.__dataclass_fields__)), ANYTHING))
def test_nonsense_is_refused_or_taken_but_never_crashes(changes: dict[str, Any]) -> None:
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        made = config(**changes)
    except ConfigError:
        return
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert ModelConfig.from_json(made.to_json()) == made


BAD: tuple[Any, ...] = (
    0, -1, 1, 2, 2**31, 2**32, 2**40, 2**63, 2**64, 10**400, 0.5, -1.0, 1e-320, 1e30, 1e38, 1e300,
    float("nan"), float("inf"), True, "x", "", None, (), (1,), ("x",), (True,) * 3, [], {}, b"x",
)  # fmt: skip


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("field", dataclasses.fields(ModelConfig), ids=lambda field: field.name)
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_any_value_of_any_field_is_refused_or_gives_a_model(
    kind: str, field: dataclasses.Field[Any]
) -> None:
    """A config that is made can be written, and torch can build the model that it describes."""
    base = SMALL | {"kind": kind}
    base |= {"head": "masked"} if kind == "encoder" else {}
    base |= {"encoder_layers": 2} if kind == "encoder-decoder" else {}
    for value in BAD:
        try:
            made = ModelConfig(**(base | {field.name: value}))
        except ConfigError:
            continue
        assert ModelConfig.from_json(made.to_json()) == made
        made.resolved()
        with torch.device("meta"):
            build(made)


def test_sizes_that_no_tensor_can_have() -> None:
    with pytest.raises(ConfigError, match=r"model must be 1,048,576 or less; got 4294967296"):
        config(model=2**32)
    with pytest.raises(ConfigError, match=r"vocab must be 16,777,216 or less; got <int>"):
        config(vocab=10**400)
    with pytest.raises(ConfigError, match=r"norm_epsilon must be above 0 up to 1,000"):
        config(norm_epsilon=1e29)
    with pytest.raises(ConfigError, match=r"norm_epsilon must be a finite number; got 1e\+300"):
        config(norm_epsilon=1e300)
    with pytest.raises(ConfigError, match=r"a token's id is a number below 2,147,483,648"):
        config(eos=(2, 2**31))
