from __future__ import annotations

import pytest

import clearhead as ch
from clearhead.explain.interventions.places import layers_of, places_of


def test_every_layer_has_a_name() -> None:
    names = [name for name, _ in layers_of(ch.load("dates"))]
    assert names == ["E0", "E0F", "E1", "E1F", "L0", "C0", "L0F"]


def test_names_of_heads_and_layers() -> None:
    loaded = ch.load("dates")
    head, layer, hidden = places_of(loaded, ["C0H1", "L0", "E0F"])
    assert head.heads == (1,) and layer.heads == (0, 1) and hidden.heads == ()
    assert head.columns == (slice(head.attention.value_dim, 2 * head.attention.value_dim),)
    with pytest.raises(ch.ClearheadError, match=r"no layer L4"):
        places_of(loaded, "L4H0")
