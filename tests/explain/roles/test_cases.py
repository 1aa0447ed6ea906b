"""Cases of one small batch, counted by hand."""

from __future__ import annotations

import torch

from clearhead.explain.roles.batches import Edges
from clearhead.explain.roles.cases import FARTHEST, ONE, Cases, cases_of

# One sentence of five words, causal. Property 0: 3 → 0 and 1; 4 → 2. Property 1: 0 → 0; 1 → 3.
EDGES = Edges(
    sentence=torch.zeros(5, dtype=torch.int64),
    property=torch.tensor([0, 0, 0, 1, 1]),
    query=torch.tensor([3, 3, 4, 0, 1]),
    key=torch.tensor([0, 1, 2, 0, 3]),
)
CAUSAL = torch.ones(5, 5).tril().bool()[None]
KINDS = torch.tensor([[0, 1, 1, 0, 1]])


def cases() -> Cases:
    return cases_of(EDGES, CAUSAL, KINDS, 2)


def test_a_case_has_a_visible_target_and_a_choice() -> None:
    found = cases()
    # property 1: query 0 has one key only, and query 1 may not attend to key 3
    assert found.counts.tolist() == [2, 0]
    assert found.queries.to_dense().tolist() == [[0, 0, 0, 1, 1], [0] * 5]
    places = found.targets.to_dense().reshape(2, 5, 5)
    assert places.nonzero().tolist() == [[0, 3, 0], [0, 3, 1], [0, 4, 2]]


def test_random_baselines_by_hand() -> None:
    found = cases()
    # query 3: 2 targets among 4 keys; query 4: 1 among 5
    assert found.even.tolist() == [round(2 / 4 * ONE) + round(1 / 5 * ONE), 0]
    # query 3 (kinds 0 and 1): keys 0, 1, 2, not itself: 2 of 3; query 4 (kind 1): keys 1, 2: 1 of 2
    assert found.alike.tolist() == [round(2 / 3 * ONE) + round(1 / 2 * ONE), 0]


def test_offsets_of_targets() -> None:
    offsets = cases().offsets[0]
    places = offsets.nonzero()[:, 0].tolist()
    assert {place - FARTHEST: int(offsets[place]) for place in places} == {-3: 1, -2: 2}


def test_products_with_sparse_ones_are_sums_over_targets() -> None:
    torch.manual_seed(0)
    weights = torch.randint(1000, (25, 3)).double()
    found = cases().targets @ weights
    assert torch.equal(found[0], weights[[15, 16, 22]].sum(dim=0))
    assert not found[1].any()
