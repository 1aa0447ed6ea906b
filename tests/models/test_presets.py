"""The paper's models: their published sizes, and that they run and learn."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from clearhead.errors import ConfigError
from clearhead.models.build import build
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.presets import PRESETS, preset

PUBLISHED = {"transformer-base": 65e6, "transformer-big": 213e6}  # table 3


def counted(vocab: int, model: int, layers: int, hidden: int) -> int:
    """By hand: six layers each side; attention 4d², feed-forward 2·d·h + h + d, norms 2d each."""
    attention, norm = 4 * model * model, 2 * model
    feed_forward = 2 * model * hidden + hidden + model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return vocab * model + layers * (encoder + decoder)


@pytest.mark.parametrize("name", PRESETS)
def test_parameter_count(name: str) -> None:
    config = preset(name)
    with torch.device("meta"):
        model = build(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == counted(37_000, config.model, 6, config.feed_forward)
    assert abs(count - PUBLISHED[name]) < 0.04 * PUBLISHED[name]


def test_sizes_of_the_paper() -> None:
    base, big = preset("transformer-base"), preset("transformer-big")
    assert (base.layers, base.encoder_layers, base.heads, base.head_width) == (6, 6, 8, 64)
    assert (big.model, big.heads, big.head_width, big.feed_forward) == (1024, 16, 64, 4096)
    assert (base.dropout, big.dropout) == (0.1, 0.3)
    assert base.norm_place == big.norm_place == "after"


def test_unknown_preset() -> None:
    with pytest.raises(
        ConfigError, match="no preset of the name 'huge'; there are transformer-base"
    ):
        preset("huge")
    with pytest.raises(ConfigError, match="a model has no depth"):
        preset("transformer-base", depth=3)


@pytest.fixture(scope="module")
def base() -> EncoderDecoder:
    torch.manual_seed(0)
    model = build(preset("transformer-base", vocab=101, layers=2, encoder_layers=3))
    assert isinstance(model, EncoderDecoder)
    return model


def test_forward(base: EncoderDecoder) -> None:
    source, target = torch.randint(101, (2, 11)), torch.randint(101, (2, 7))
    logits = base.eval()(source, target)
    assert logits.shape == (2, 7, 101)
    assert logits.isfinite().all()


def test_later_targets_do_not_change_earlier_logits(base: EncoderDecoder) -> None:
    source, target = torch.randint(101, (2, 11)), torch.randint(101, (2, 7))
    other = target.clone()
    other[:, 4] = (target[:, 4] + 1) % 101
    before, after = base.eval()(source, target), base(source, other)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:], atol=1e-3)


def test_a_later_source_token_changes_every_logit(base: EncoderDecoder) -> None:
    source, target = torch.randint(101, (2, 11)), torch.randint(101, (2, 7))
    other = source.clone()
    other[:, -1] = (source[:, -1] + 1) % 101
    apart = (base.eval()(source, target) - base(other, target)).abs().amax(-1)
    assert (apart > 1e-4).all()


def test_training_step(base: EncoderDecoder) -> None:
    source, target = torch.randint(101, (4, 11)), torch.randint(101, (4, 8))
    base.train()
    optimiser = torch.optim.Adam(base.parameters(), lr=3e-4)
    losses = []
    with torch.enable_grad():
        for _ in range(6):
            logits = base(source, target[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]
