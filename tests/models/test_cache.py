from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.models.build import build
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder


def decoder() -> Decoder:
    torch.manual_seed(1)
    model = build(
        ModelConfig(
            kind="decoder", vocab=31, context=64, model=18, layers=3, heads=3, feed_forward=11
        )
    )
    assert isinstance(model, Decoder)
    return model.eval()


def translator() -> EncoderDecoder:
    torch.manual_seed(1)
    model = build(
        ModelConfig(
            kind="encoder-decoder", vocab=31, context=64, model=18, layers=3, encoder_layers=2,
            heads=3, feed_forward=11, positions="relative",
        )
    )  # fmt: skip
    assert isinstance(model, EncoderDecoder)
    with torch.no_grad():
        for part in (model.encoder, model.decoder):
            assert part.relative is not None
            part.relative.weight.normal_()
    return model.eval()


def test_a_cache_for_each_layer() -> None:
    cache = ModelCache.for_layers(3, cross=True, capacity=5)
    assert len(cache.layers) == len(cache.cross_layers) == 3
    assert cache.layers[0].capacity == 5
    assert cache.length == 0
    assert decoder().new_cache(7).cross_layers == []


def test_growth() -> None:
    model, ids = decoder(), torch.arange(22).view(2, 11)
    cache = model.new_cache(capacity=2)
    model(ids[:, :5], cache=cache)
    assert cache.length == 5
    assert cache.lengths.tolist() == [5, 5]
    assert cache.positions(3).tolist() == [[5, 6, 7]]
    model(ids[:, 5:], cache=cache)
    assert [layer.length for layer in cache.layers] == [11, 11, 11]


def test_cropping_takes_tokens_back() -> None:
    model, ids = decoder(), torch.arange(22).view(2, 11)
    cache = model.new_cache()
    model(torch.cat([ids[:, :6], 30 - ids[:, :4]], dim=1), cache=cache)
    cache.crop(6)
    assert cache.length == 6
    torch.testing.assert_close(model(ids[:, 6:], cache=cache), model(ids)[:, 6:])


def test_cropping_uneven_rows() -> None:
    model, ids = decoder(), torch.arange(22).view(2, 11)
    real = torch.ones(2, 11).bool()
    real[1, 4:] = False
    cache = model.new_cache()
    model(ids, real=real, cache=cache)
    cache.crop(7)
    assert cache.lengths.tolist() == [7, 4]
    step = torch.tensor([[3], [5]])
    got = model(step, cache=cache)
    for row, length in enumerate((7, 4)):
        alone = model(torch.cat([ids[row, :length], step[row]])[None])
        torch.testing.assert_close(got[row, -1], alone[0, -1])


def test_reset_forgets() -> None:
    model, ids = translator(), torch.arange(22).view(2, 11)
    cache = model.new_cache()
    real = torch.ones(2, 11).bool()
    real[0, 7:] = False
    states, counts = model.encode(ids, real=real)
    model.decode(ids, states, counts, cache=cache)
    cache.reset()
    assert cache.length == 0
    assert cache.source_counts is None
    states, counts = model.encode(ids.flip(1))
    got = model.decode(ids, states, counts, cache=cache)
    torch.testing.assert_close(got, model(ids.flip(1), ids))


def test_reordering_moves_rows_with_their_sources() -> None:
    model = translator()
    source, target = torch.arange(27).view(3, 9), torch.arange(15).view(3, 5)
    real = torch.ones(3, 9).bool()
    real[1, 4:] = False
    cache = model.new_cache()
    states, counts = model.encode(source, real=real)
    model.decode(target, states, counts, cache=cache)
    rows = torch.tensor([1, 1, 0, 2])
    cache.reorder(rows)
    step = torch.tensor([[1], [2], [3], [4]])
    got = model.decode(step, cache=cache)
    for place, row in enumerate(rows.tolist()):
        whole = torch.cat([target[row], step[place]])[None]
        alone = model(source[row][real[row]][None], whole)
        torch.testing.assert_close(got[place, -1], alone[0, -1])


def test_decoding_needs_a_source() -> None:
    model, target = translator(), torch.arange(5)[None]
    with pytest.raises(InputError, match="decode needs the source's states"):
        model.decode(target)
    with pytest.raises(InputError, match="decode needs the source's states"):
        model.decode(target, cache=model.new_cache())
