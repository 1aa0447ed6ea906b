"""The cases of a batch: which queries have which targets among the keys that they may see.

Everything here is the same for all heads of a layer, and for all layers with the same mask: it is
computed once and used for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from clearhead.explain.roles.batches import Edges

ONE = 1 << 30  # a weight of 1 as a whole number: sums of whole numbers do not depend on their order
FARTHEST = 31  # offsets are counted from −31 to 31
OFFSET_BINS = 2 * FARTHEST + 1


@dataclass(frozen=True)
class Cases:
    """Targets that can be seen, and what a head would score for free at them."""

    candidates: Bool[Tensor, "batch query key"]
    sentence: Int[Tensor, " edge"]
    property: Int[Tensor, " edge"]
    query: Int[Tensor, " edge"]
    key: Int[Tensor, " edge"]
    case_sentence: Int[Tensor, " case"]
    case_property: Int[Tensor, " case"]
    case_query: Int[Tensor, " case"]
    counts: Int[Tensor, " property"]  # cases
    even: Int[Tensor, " property"]  # what choosing at random among visible keys would hit, × ONE
    alike: Int[Tensor, " property"]  # the same, among visible keys of the target's kind
    offsets: Int[Tensor, "property offset"]  # cases whose target stands at this offset


def cases_of(
    edges: Edges,
    candidates: Bool[Tensor, "batch query key"],
    word_kinds: Int[Tensor, "batch position"],
    properties: int,
) -> Cases:
    """The cases at which a query chooses among at least two candidates, one of them a target."""
    choices = candidates.sum(dim=-1)
    open_to = candidates[edges.sentence, edges.query, edges.key]
    kept = open_to & (choices[edges.sentence, edges.query] > 1)
    sentence, prop = edges.sentence[kept], edges.property[kept]
    query, key = edges.query[kept], edges.key[kept]
    width = candidates.shape[1]
    name = (sentence * properties + prop) * width + query
    cases, case, targets = torch.unique_consecutive(name, return_inverse=True, return_counts=True)
    case_query, rest = cases % width, cases // width
    case_property, case_sentence = rest % properties, rest // properties
    visible = choices[case_sentence, case_query]
    alike = _alike(candidates, word_kinds, sentence, query, key, case, len(cases))
    where = (key - query).clamp(-FARTHEST, FARTHEST) + FARTHEST
    inside = (key - query).abs() <= FARTHEST
    offsets = torch.zeros(properties * OFFSET_BINS, dtype=torch.int64)
    offsets.index_add_(0, (prop * OFFSET_BINS + where)[inside], torch.ones_like(prop)[inside])
    return Cases(
        candidates,
        sentence,
        prop,
        query,
        key,
        case_sentence,
        case_property,
        case_query,
        _summed(case_property, torch.ones_like(cases), properties),
        _summed(case_property, _share(targets, visible), properties),
        _summed(case_property, _share(targets, alike), properties),
        offsets.view(properties, OFFSET_BINS),
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
    """For each case, how many candidates but itself are of the kind of one of its targets."""
    kinds = int(word_kinds.max()) + 1 if word_kinds.numel() else 1
    one_hot = torch.nn.functional.one_hot(word_kinds, kinds).float()
    of_kind = (candidates.float() @ one_hot).long()  # (batch, query, kind)
    kind = word_kinds[sentence, key]
    first = torch.unique(case * kinds + kind)  # a kind counts once for a case
    place = torch.zeros(cases, dtype=torch.int64).scatter_(0, case, torch.arange(len(case)))
    found, of = first // kinds, first % kinds
    row, asks = sentence[place[found]], query[place[found]]
    itself = candidates[row, asks, asks] & (word_kinds[row, asks] == of)
    many = of_kind[row, asks, of] - itself.long()
    return torch.zeros(cases, dtype=torch.int64).index_add_(0, found, many)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    return (part.double() / whole.double().clamp(min=1.0) * ONE).round().long()


def _summed(where: Tensor, what: Tensor, properties: int) -> Tensor:
    return torch.zeros(properties, dtype=torch.int64).index_add_(0, where, what)
