"""Checks of what a model is given."""

from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.models import inputs
from clearhead.models.cache import ModelCache

pytestmark = pytest.mark.usefixtures("unchecked")
IDS, WEIGHT = torch.tensor([[3, 5, 7], [11, 13, 17]]), torch.ones(19, 6)


def config(**changes: object) -> ch.ModelConfig:
    fields = {"vocab": 19, "context": 5, "model": 6, "layers": 2, "heads": 3, "feed_forward": 7}
    return ch.ModelConfig(kind="decoder", **{**fields, **changes})  # type: ignore[arg-type]


def test_no_config() -> None:
    inputs.check_config(config())
    with pytest.raises(ConfigError, match="config must be a ModelConfig; got 'tiny'"):
        inputs.check_config("tiny")


def test_ids_are_where_the_weights_are() -> None:
    inputs.check_ids("ids", IDS, WEIGHT)
    inputs.check_ids("ids", IDS.to("meta"), WEIGHT.to("meta"))
    with pytest.raises(InputError, match="ids cannot be read: this model has no weights in memory"):
        inputs.check_ids("ids", IDS, WEIGHT.to("meta"))
    with pytest.raises(InputError, match="target must be on cpu"):
        inputs.check_ids("target", IDS.to("meta"), WEIGHT)


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal"])
def test_positions_end_with_the_context(positions: str) -> None:
    inputs.check_length(config(positions=positions), 3, 2)
    with pytest.raises(InputError, match="6 tokens do not fit into this model's context of 5"):
        inputs.check_length(config(positions=positions), 4, 2)


@pytest.mark.parametrize("positions", ["alibi", "relative", "none"])
def test_positions_without_an_end(positions: str) -> None:
    inputs.check_length(config(positions=positions), 997, 2)


def test_a_cache_of_another_model_or_batch() -> None:
    cache = ModelCache.for_layers(2)
    inputs.check_cache(cache, 2, IDS, cross=False)
    cache.layers[0].append(torch.ones(3, 2, 1, 4), torch.ones(3, 2, 1, 4))
    with pytest.raises(ShapeError, match="cache holds a batch of 3, and the ids are 2 rows"):
        inputs.check_cache(cache, 2, IDS, cross=False)
    for layers, cross in ((3, False), (2, True)):
        with pytest.raises(InputError, match="cache must be of this model"):
            inputs.check_cache(cache, layers, IDS, cross=cross)
    with pytest.raises(InputError, match=r"model\.new_cache\(\); got dict"):
        inputs.check_cache({}, 2, IDS, cross=False)


def test_the_states_of_a_source() -> None:
    def check(source: object, counts: object = None) -> None:
        inputs.check_source(source, counts, IDS, model=6, dtype=torch.float32)

    check(torch.ones(2, 4, 6), torch.tensor([1, 4]))
    with pytest.raises(ShapeError, match=r"states \(batch, key, 6\) from encode; got \(2, 4, 5\)"):
        check(torch.ones(2, 4, 5))
    with pytest.raises(ShapeError, match="one batch; got 1 sources and 2 targets"):
        check(torch.ones(1, 4, 6))
    with pytest.raises(InputError, match=r"source must be torch\.float32, as the model is"):
        check(torch.ones(2, 4, 6, dtype=torch.float64))
    with pytest.raises(InputError, match="source_counts must be 1 to 4; got 5"):
        check(torch.ones(2, 4, 6), torch.tensor([1, 5]))
