"""The cases of a batch: which queries have which targets among the keys that they may attend to.

All of this is the same for all heads of a layer, and for all layers with the same mask, so it is
computed once.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.explain.roles.batches import Edges

ONE = 1 << 30  # a weight of 1 as an integer: sums of integers do not depend on their order
FARTHEST = 31  # offsets are counted from −31 to 31
OFFSET_BINS = 2 * FARTHEST + 1


@dataclass(frozen=True)
class Cases:
    """Targets that a query may attend to, and the trivial baselines there.

    ``targets`` and ``queries`` are sparse: 1 where a place is a target of a property, and where a
    query is a case of it. The weight of a head on targets is a product: ``targets @ weights``.
    """

    targets: Float[Tensor, "property place"]  # place: query · keys + key
    queries: Float[Tensor, "property query"]  # query: sentence · queries + query
    counts: Int[Tensor, " property"]  # cases
    even: Int[Tensor, " property"]  # expected hits of a random choice among visible keys, × ONE
    alike: Int[Tensor, " property"]  # the same, among visible keys of the target's kind
    offsets: Int[Tensor, "property offset"]  # cases whose target stands at this offset


def cases_of(
    edges: Edges,
    candidates: Bool[Tensor, "batch query key"],
    word_kinds: Int[Tensor, "batch position"],
    properties: int,
) -> Cases:
    """Find the cases: queries with at least two candidate keys, one of them a target."""
    choices = candidates.sum(dim=-1)
    open_to = candidates[edges.sentence, edges.query, edges.key]
    kept = open_to & (choices[edges.sentence, edges.query] > 1)
    sentence, prop = edges.sentence[kept], edges.property[kept]
    query, key = edges.query[kept], edges.key[kept]
    queries, keys = choices.numel(), candidates.shape[2]
    query_place = sentence * candidates.shape[1] + query
    cases, case, targets = torch.unique_consecutive(
        prop * queries + query_place, return_inverse=True, return_counts=True
    )
    case_property, case_query = cases // queries, cases % queries
    visible = choices.flatten()[case_query]
    alike = _alike(candidates, word_kinds, sentence, query, key, case, len(cases))
    where = (key - query).clamp(-FARTHEST, FARTHEST) + FARTHEST
    inside = (key - query).abs() <= FARTHEST
    offsets = torch.zeros(properties * OFFSET_BINS, dtype=torch.int64)
    offsets.index_add_(0, (prop * OFFSET_BINS + where)[inside], torch.ones_like(prop)[inside])
    return Cases(
        _ones(prop, query_place * keys + key, (properties, queries * keys)),
        _ones(case_property, case_query, (properties, queries)),
        _summed(case_property, torch.ones_like(cases), properties),
        _summed(case_property, _share(targets, visible), properties),
        _summed(case_property, _share(targets, alike), properties),
        offsets.view(properties, OFFSET_BINS),
    )


def _ones(row: Tensor, column: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix of ones; rows must be sorted. Its products are exact below 2⁵³."""
    begins = torch.zeros(shape[0] + 1, dtype=torch.int64)
    begins[1:] = torch.bincount(row, minlength=shape[0]).cumsum(0)
    with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(
            begins, column, torch.ones(len(row), dtype=torch.float64), shape, check_invariants=False
        )


def _alike(
    candidates: Tensor,
    word_kinds: Tensor,
    sentence: Tensor,
    query: Tensor,
    key: Tensor,
    case: Tensor,
    cases: int,
) -> Tensor:
    """For each case, how many candidates except itself have the word kind of one of its targets."""
    kinds = int(word_kinds.max()) + 1 if word_kinds.numel() else 1
    one_hot = torch.nn.functional.one_hot(word_kinds, kinds).float()
    of_kind = (candidates.float() @ one_hot).long()  # (batch, query, kind)
    kind = word_kinds[sentence, key]
    first = torch.unique(case * kinds + kind)  # a kind counts once for a case
    place = torch.zeros(cases, dtype=torch.int64).scatter_(0, case, torch.arange(len(case)))
    found, of = first // kinds, first % kinds
    row, at = sentence[place[found]], query[place[found]]
    itself = candidates[row, at, at] & (word_kinds[row, at] == of)
    many = of_kind[row, at, of] - itself.long()
    return torch.zeros(cases, dtype=torch.int64).index_add_(0, found, many)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    return (part.double() / whole.double().clamp(min=1.0) * ONE).round().long()


def _summed(where: Tensor, what: Tensor, properties: int) -> Tensor:
    return torch.zeros(properties, dtype=torch.int64).index_add_(0, where, what)
