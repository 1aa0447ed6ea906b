"""The one stack: every kind of position, norm and feed-forward builds, runs, caches and learns."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.errors import InputError
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder

SIZES: dict[str, Any] = {
    "vocab": 37, "context": 41, "model": 30, "layers": 2, "heads": 5, "feed_forward": 23,
}  # fmt: skip
# Every pair of two settings appears at least once.
COVERING = [
    ("sinusoidal", "after", "layer", False),
    ("sinusoidal", "before", "rms", True),
    ("sinusoidal-halves", "around", "layer", True),
    ("sinusoidal-halves", "after", "rms", False),
    ("learned", "before", "layer", False),
    ("learned", "around", "rms", True),
    ("learned", "after", "layer", True),
    ("rotary", "before", "rms", True),
    ("rotary", "after", "layer", False),
    ("rotary", "around", "rms", False),
    ("alibi", "before", "layer", True),
    ("alibi", "after", "rms", False),
    ("alibi", "around", "layer", False),
    ("relative", "before", "rms", False),
    ("relative", "after", "layer", True),
    ("relative", "around", "layer", False),
    ("none", "before", "layer", False),
    ("none", "around", "rms", True),
    ("none", "after", "rms", True),
]
covering = pytest.mark.parametrize(("positions", "place", "norm", "gated"), COVERING)


def made(kind: str, **fields: Any) -> Any:
    """A model with weights that matter: also the ones that start at zero."""
    more = {"encoder_layers": 3} if kind == "encoder-decoder" else {}
    torch.manual_seed(3)
    model = build(ModelConfig.from_fields({"kind": kind, **SIZES, **more, **fields}))
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter)
            parameter.add_(0.3 * noise) if parameter.ndim == 1 else parameter.copy_(0.3 * noise)
    return model.eval()


def settings(positions: str, place: str, norm: str, gated: bool) -> dict[str, Any]:
    return {
        "positions": positions, "norm_place": place, "norm": norm, "gated": gated,
        "relative_buckets": 6, "relative_distance": 11,
    }  # fmt: skip


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))


@covering
def test_decoder_cached_equals_whole(positions: str, place: str, norm: str, gated: bool) -> None:
    model = made("decoder", **settings(positions, place, norm, gated), kv_heads=1)
    ids = torch.randint(37, (2, 13))
    whole = model(ids)
    assert whole.shape == (2, 13, 37)
    cache = model.new_cache()
    parts = [model(ids[:, part], cache=cache) for part in (slice(0, 5), slice(5, 6), slice(6, 13))]
    close(torch.cat(parts, dim=1), whole)
    later = ids.clone()
    later[:, 9] = (ids[:, 9] + 1) % 37
    close(model(later)[:, :9], whole[:, :9])


@covering
def test_decoder_uneven_cache(positions: str, place: str, norm: str, gated: bool) -> None:
    model = made("decoder", **settings(positions, place, norm, gated), window=4)
    ids = torch.randint(37, (2, 9))
    real = torch.ones(2, 9).bool()
    real[0, :2], real[1, :6] = False, False  # two columns hold nothing at all
    more = torch.randint(37, (2, 4))
    more_real = torch.tensor([[True, False, False, False], [True, True, True, False]])
    cache, last = model.new_cache(), torch.randint(37, (2, 1))
    model(ids, real=real, cache=cache)
    model(more, real=more_real, cache=cache)
    got = model(last, cache=cache)
    for row in range(2):
        alone = torch.cat([ids[row][real[row]], more[row][more_real[row]], last[row]])
        close(got[row, -1], model(alone[None])[0, -1])


@covering
def test_encoder_decoder_cached_equals_whole(
    positions: str, place: str, norm: str, gated: bool
) -> None:
    model = made("encoder-decoder", **settings(positions, place, norm, gated))
    source, target = torch.randint(37, (2, 11)), torch.randint(37, (2, 7))
    whole = model(source, target)
    assert whole.shape == (2, 7, 37)
    cache = model.new_cache()
    states, counts = model.encode(source)
    assert states.shape == (2, 11, 30)
    assert counts is None
    first = model.decode(target[:, :3], states, cache=cache)
    rest = [model.decode(target[:, i : i + 1], cache=cache) for i in range(3, 7)]
    close(torch.cat([first, *rest], dim=1), whole)


@covering
def test_encoder_does_not_see_padding(positions: str, place: str, norm: str, gated: bool) -> None:
    model = made("encoder", **settings(positions, place, norm, gated), head="none")
    ids = torch.randint(37, (3, 9))
    real = torch.ones(3, 9).bool()
    real[0, 6:], real[1, :4] = False, False
    got = model(ids, real=real)
    assert got.shape == (3, 9, 30)
    for row in range(3):
        close(got[row][real[row]], model(ids[row][real[row]][None])[0])


@covering
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_gradient_reaches_every_parameter(
    kind: str, positions: str, place: str, norm: str, gated: bool
) -> None:
    head = {"head": "masked"} if kind == "encoder" else {}
    biases = {
        "attention_bias": True, "attention_output_bias": True, "feed_forward_bias": True,
        "output_bias": True, "embedding_norm": True, "tied": False, "attention_norm": True,
    }  # fmt: skip
    model = made(kind, **settings(positions, place, norm, gated), **head, **biases).train()
    inputs = [torch.randint(37, (2, 9)) for _ in range(2 if kind == "encoder-decoder" else 1)]
    with torch.enable_grad():
        model(*inputs).square().mean().backward()
    without = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    # What is the same for every key drops out of the softmax: a key's bias, unless it is normed.
    assert not [name for name in without if not name.endswith("key.bias")]


def test_kinds() -> None:
    assert isinstance(made("decoder"), Decoder)
    assert isinstance(made("encoder", head="none"), Encoder)
    assert isinstance(made("encoder-decoder"), EncoderDecoder)


def test_options_matter() -> None:
    """Each setting changes the result, so none is forgotten on the way."""
    ids = torch.randint(37, (1, 13))
    plain = made("decoder")(ids)
    for change in (
        {"window": 3}, {"attention_scale": 0.1}, {"attention_softcap": 0.5}, {"rotary_base": 20.0},
        {"rotary_width": 4}, {"embedding_scale": 3.0}, {"output_scale": 0.5},
        {"output_softcap": 0.5}, {"norm_epsilon": 0.5},
        {"window": 3, "window_layers": [True, False]},
        {"window": 13, "window_rotary_base": 5.0},
        {"rotary_scaling": {"kind": "linear", "factor": 5.0}},
        {"activation": "relu"},
    ):  # fmt: skip
        assert not torch.allclose(made("decoder", **change)(ids), plain, atol=1e-3), change


def test_value_width_and_sinks() -> None:
    model = made("decoder", value_dim=7, key_dim=4, sinks=True)
    ids = torch.randint(37, (2, 9))
    cache = model.new_cache()
    parts = [model(ids[:, :4], cache=cache), model(ids[:, 4:], cache=cache)]
    close(torch.cat(parts, dim=1), model(ids))


def test_dropout_only_in_training() -> None:
    ids = torch.randint(37, (2, 9))
    for kind, inputs in (("decoder", (ids,)), ("encoder-decoder", (ids, ids))):
        model = made(kind, dropout=0.3)
        assert torch.equal(model(*inputs), model(*inputs))
        same = made(kind, dropout=0.0)
        assert torch.equal(model(*inputs), same(*inputs))
        model.train()
        assert not torch.allclose(model(*inputs), model(*inputs))
        assert torch.equal(same.train()(*inputs), same(*inputs))


def shares(model: Any) -> set[float]:
    """The shares that the parts of a model drop in training."""
    return {part.dropout for part in model.modules() if getattr(part, "dropout", 0.0)}


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("attention_dropout", "MultiHeadAttention"),
        ("embedding_dropout", "Embedding"),
        ("activation_dropout", "FeedForward"),
        ("dropout", "Residual"),
    ],
)
def test_each_dropout_is_in_its_place(field: str, part: str) -> None:
    ids = torch.randint(37, (2, 9))
    own = {"attention_dropout": 0.0, "embedding_dropout": 0.0} | {field: 0.37}
    model = made("encoder-decoder", **own)
    dropping = {type(each).__name__ for each in model.modules() if getattr(each, "dropout", 0.0)}
    assert dropping == {part}
    assert shares(model) == {0.37}
    still = model(ids, ids)
    model.train()
    assert not torch.allclose(model(ids, ids), still)
    assert torch.equal(model.eval()(ids, ids), still)


def test_dropout_holds_for_all_that_has_none_of_its_own() -> None:
    assert shares(made("decoder", dropout=0.3)) == {0.3}
    assert shares(made("decoder", dropout=0.3, attention_dropout=0.0)) == {0.3}
    assert shares(made("decoder", dropout=0.3, attention_dropout=0.1)) == {0.3, 0.1}
    labels = made("encoder", head="classification", labels=3, head_dropout=0.2)
    assert shares(labels) == {0.2}


def test_two_token_embeddings() -> None:
    ids = torch.randint(37, (2, 9))
    one, two = made("encoder-decoder"), made("encoder-decoder", shared_embedding=False)
    assert one.decoder.embedding.tokens is one.encoder.embedding.tokens
    assert two.decoder.embedding.tokens is not two.encoder.embedding.tokens
    before = two(ids, ids)
    torch.nn.init.zeros_(two.encoder.embedding.tokens.weight)
    assert not torch.allclose(two(ids, ids), before)
    torch.nn.init.zeros_(two.decoder.embedding.tokens.weight)
    assert not two(ids, ids).any()  # the output is tied to the decoder's


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([1, 2]), r"ids must be \(batch, query\) with .*; got \(2,\)"),
        (torch.ones(1, 3), "got torch.float32"),
        (torch.ones(2, 0).long(), "at least one token"),
        (torch.tensor([[3, 37]]), "token ids must be 0 … 36, the vocabulary; got 3 … 37"),
        (torch.tensor([[-1, 5]]), "got -1 … 5"),
    ],
)
def test_bad_ids(unchecked: None, ids: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made("decoder")(ids)


@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal"])
def test_context_is_a_limit(positions: str) -> None:
    long = torch.randint(37, (1, 42))
    model = made("decoder", positions=positions)
    with pytest.raises(InputError, match="42 tokens do not fit into this model's context of 41"):
        model(long)
    cache = model.new_cache()
    model(long[:, :40], cache=cache)
    with pytest.raises(InputError, match="42 tokens do not fit"):
        model(long[:, :2], cache=cache)


@pytest.mark.parametrize("positions", ["alibi", "relative", "none"])
def test_some_positions_have_no_limit(positions: str) -> None:
    long = torch.randint(37, (1, 42))
    assert made("decoder", positions=positions)(long).shape == (1, 42, 37)


def test_padding_beyond_the_context_is_no_matter() -> None:
    model = made("decoder", positions="learned")
    ids, real = torch.randint(37, (2, 50)), torch.zeros(2, 50).bool()
    real[0, 10:50], real[1, 40:] = True, True
    close(model(ids, real=real)[1, 40:], model(ids[1:, 40:])[0])
