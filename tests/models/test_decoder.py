from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import ConfigError

CONFIG = ch.ModelConfig(
    kind="decoder", vocab=11, context=29, model=6, layers=2, heads=3, feed_forward=7
)


def test_a_later_token_changes_nothing_before_it() -> None:
    model = ch.Decoder(CONFIG).eval()
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    changed = torch.tensor([[1, 2, 3, 9, 8]])
    first, second = model(ids), model(changed)
    assert first.shape == (1, 5, 11)
    assert torch.equal(first[:, :3], second[:, :3])
    assert not torch.allclose(first[:, 3:], second[:, 3:])


def test_the_last_real_token_of_each_row() -> None:
    model = ch.Decoder(CONFIG).eval()
    ids = torch.tensor([[1, 2, 3], [4, 5, 0]])
    real = torch.tensor([[True, True, True], [True, True, False]])
    whole, last = model(ids, real=real), model(ids, real=real, last_only=True)
    assert last.shape == (2, 1, 11)
    torch.testing.assert_close(last[:, 0], torch.stack([whole[0, 2], whole[1, 1]]))


def test_a_step_with_the_cache_equals_the_whole_forward() -> None:
    model = ch.Decoder(CONFIG).eval()
    ids, cache = torch.tensor([[1, 2, 3, 4, 5]]), model.new_cache(capacity=7)
    parts = [model(ids[:, :3], cache=cache), model(ids[:, 3:], cache=cache)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(ids))
    assert cache.length == 5


def test_other_kinds_are_refused() -> None:
    config = CONFIG.changed(kind="encoder", head="none")
    with pytest.raises(ConfigError, match=r"Decoder wants a config of kind 'decoder'.*'encoder'"):
        ch.Decoder(config)
