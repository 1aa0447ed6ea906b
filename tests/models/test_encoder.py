from __future__ import annotations

from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import ConfigError

CONFIG = ch.ModelConfig(
    kind="encoder", head="none", vocab=11, context=29, model=6, layers=2, heads=3, feed_forward=7,
    segments=2,
)  # fmt: skip
IDS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"head": "none"}, (2, 5, 6)),
        ({"head": "masked"}, (2, 5, 11)),
        ({"head": "embedding"}, (2, 6)),
        ({"head": "classification", "labels": 3}, (2, 3)),
    ],
)
def test_the_head_decides_the_shape(fields: dict[str, Any], shape: tuple[int, ...]) -> None:
    assert ch.Encoder(CONFIG.changed(**fields)).eval()(IDS).shape == shape


def test_every_token_sees_every_token() -> None:
    model = ch.Encoder(CONFIG).eval()
    changed = IDS.clone()
    changed[0, 4] = 9
    difference = (model(IDS) - model(changed)).abs().sum(dim=-1)
    assert (difference[0] > 0).all()
    assert (difference[1] == 0).all()


def test_segments_count() -> None:
    model = ch.Encoder(CONFIG).eval()
    ones = torch.ones_like(IDS)
    assert torch.equal(model(IDS), model(IDS, segments=0 * ones))
    assert not torch.allclose(model(IDS), model(IDS, segments=ones))


def test_padding_changes_no_embedding() -> None:
    model = ch.Encoder(CONFIG.changed(head="embedding")).eval()
    real = torch.tensor([[True] * 5, [False, False, True, True, True]])
    torch.testing.assert_close(model(IDS, real=real)[1], model(IDS[1:, 2:])[0])


def test_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="wants a config of kind 'encoder'; got 'decoder'"):
        ch.Encoder(CONFIG.changed(kind="decoder", head="language"))
