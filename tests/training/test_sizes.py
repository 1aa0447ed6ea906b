"""Sizes of models to train."""

from __future__ import annotations

import pytest

from clearhead.errors import ConfigError
from clearhead.training.sizes import SIZES, language_config, pairs_config


def test_sizes() -> None:
    for size in SIZES:
        assert language_config(size, 1000).family == "llama"
        assert pairs_config(size, 1000).family == "bart"
    paper = pairs_config("paper-big", 37_000)
    assert (paper.model, paper.heads, paper.layers, paper.feed_forward) == (1024, 16, 6, 4096)
    assert paper.dropout == 0.3
    odd = language_config("tiny", 1000, positions="alibi", attention_norm=False)
    assert odd.family == "clearhead"  # no config.json of a public family can say it
    with pytest.raises(ConfigError, match="no size 'huge'"):
        language_config("huge", 1000)
