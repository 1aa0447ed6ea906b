from __future__ import annotations

from torch import nn

from clearhead.trace.watching.layer_names import LayerNames


def names_of(*paths: str) -> LayerNames:
    return LayerNames({path: nn.Linear(2, 2) for path in paths})


def test_numbers_come_from_the_path() -> None:
    names = names_of("model.layers.4.attn", "model.layers.7.attn")
    assert names.name("model.layers.7.attn", False, 0) == "L7"
    assert names.name("model.layers.4.attn", False, 0) == "L4"
    assert names.known() == ["L7", "L4"]


def test_layers_are_counted_where_paths_differ_otherwise() -> None:
    names = names_of("down.0.attn", "middle.attn", "up.0.attn")
    paths = ("down.0.attn", "middle.attn", "up.0.attn")
    assert [names.name(path, False, 0) for path in paths] == ["L0", "L1", "L2"]


def test_two_stacks_and_cross_attention() -> None:
    names = names_of("encoder.0.attn", "decoder.0.attn", "decoder.0.cross_attn")
    assert names.two_stacks and names.in_encoder("encoder.0.attn")
    assert names.name("encoder.0.attn", False, 0) == "E0"
    assert names.name("decoder.0.attn", False, 0) == "L0"
    assert names.name("decoder.0.cross_attn", True, 0) == "C0"
    assert not names_of("encoder.0.attn").two_stacks


def test_a_shared_layer_gets_the_next_free_name() -> None:
    names = names_of("layer.attn")
    assert [names.name("layer.attn", False, n) for n in (0, 1, 2, 1)] == ["L0", "L1", "L2", "L1"]
