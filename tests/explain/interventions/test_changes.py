from __future__ import annotations

import pytest
from torch import nn

from clearhead.explain.interventions.changes import (
    Change,
    Cuts,
    changes_of,
    in_force,
    replaced_at,
)

HEAD = Change("L3H2", "ablated, zero", (2,), None)
EDGE = Change("L3", "edges ablated", (0, 1, 2), 7, lambda row, keys: [row + 3, keys - 1])


def test_changes_are_known_in_their_order_while_they_are_made() -> None:
    layer, other = nn.Linear(2, 3), nn.Linear(2, 3)
    with in_force(layer, HEAD), pytest.raises(KeyError), in_force(layer, EDGE):
        assert changes_of(layer) == (HEAD, EDGE)
        assert changes_of(layer, before=EDGE) == (HEAD,)
        assert changes_of(other) == ()
        raise KeyError
    assert changes_of(layer) == ()


def test_which_heads_are_replaced_and_which_edges_are_cut() -> None:
    assert replaced_at([HEAD, EDGE], 2, 5) and not replaced_at([HEAD, EDGE], 1, 5)
    cuts = Cuts([HEAD, EDGE], 1, 11)
    assert cuts.at(1, 7) == {4, 10}
    assert cuts.at(1, 6) == frozenset() == cuts.at(3, 7)
