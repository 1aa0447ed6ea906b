from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import ConfigError, InputError

CONFIG = ch.ModelConfig(
    kind="encoder-decoder", vocab=11, context=29, model=6, layers=2, encoder_layers=1, heads=3,
    feed_forward=7,
)  # fmt: skip
SOURCE, TARGET = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[6, 7, 8]])


def test_the_source_counts_and_later_target_tokens_do_not() -> None:
    model = ch.EncoderDecoder(CONFIG).eval()
    logits = model(SOURCE, TARGET)
    assert logits.shape == (1, 3, 11)
    assert not torch.allclose(logits, model(SOURCE.flip(1) + 1, TARGET))
    later = model(SOURCE, torch.tensor([[6, 7, 9]]))
    assert torch.equal(logits[:, :2], later[:, :2])


def test_both_sides_share_one_embedding() -> None:
    model = ch.EncoderDecoder(CONFIG)
    assert model.encoder.embedding.tokens is model.decoder.embedding.tokens


def test_steps_with_the_cache_need_the_source_once() -> None:
    model = ch.EncoderDecoder(CONFIG).eval()
    states, counts = model.encode(SOURCE)
    cache = model.new_cache()
    first = model.decode(TARGET[:, :1], states, counts, cache=cache)
    rest = model.decode(TARGET[:, 1:], cache=cache)
    torch.testing.assert_close(torch.cat([first, rest], dim=1), model(SOURCE, TARGET))


def test_padding_of_the_source_changes_nothing() -> None:
    model = ch.EncoderDecoder(CONFIG).eval()
    padded = torch.tensor([[9, 9, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7]])
    real = torch.tensor([[False, False, *[True] * 5], [True] * 7])
    both = model(padded, TARGET.expand(2, -1), source_real=real)
    torch.testing.assert_close(both[:1], model(SOURCE, TARGET))


def test_decoding_without_a_source() -> None:
    model = ch.EncoderDecoder(CONFIG)
    with pytest.raises(InputError, match="needs the source's states, from encode"):
        model.decode(TARGET, cache=model.new_cache())


def test_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="EncoderDecoder wants a config of kind"):
        ch.EncoderDecoder(CONFIG.changed(kind="decoder", encoder_layers=None))
