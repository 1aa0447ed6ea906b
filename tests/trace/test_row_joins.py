from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clearhead.trace.row_joins import joined, joined_rules
from clearhead.trace.row_rules import RowBias, RowMask, RowRules


def mask(*spans: tuple[int, int], real: list[bool] | None = None) -> RowMask:
    low, high = (torch.tensor([[span[side] for span in spans]]) for side in (0, 1))
    return RowMask(low, high, None if real is None else torch.tensor([real]))


def cells(rules: list[RowRules], keys: int) -> Tensor:
    """Every row, with the keys that came later as not visible."""
    rows = []
    for piece in rules:
        seen = None
        if piece.mask is not None:
            seen = piece.mask.block(0, range(piece.rows), range(piece.keys))
        if seen is None:
            seen = torch.ones(1, piece.rows, piece.keys, dtype=torch.bool)
        rows.append(torch.nn.functional.pad(seen[0], (0, keys - piece.keys), value=False))
    return torch.cat(rows)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=7))
def test_joined_rules_mean_the_same(steps: list[tuple[int, bool, bool]]) -> None:
    rules = []
    for number, (low, masked, padded) in enumerate(steps):
        keys = number + 5
        real = [key != 2 for key in range(keys)] if padded else None
        rules.append(RowRules(1, keys, mask((low, keys), real=real) if masked else None))
    found = joined_rules(rules)
    assert torch.equal(cells(found, 12), cells(rules, 12))
    assert sum(piece.rows for piece in found) == len(steps)


def test_a_generated_text_has_one_rule() -> None:
    prompt = RowRules(3, 3, mask((0, 1), (0, 2), (0, 3)))
    found = joined_rules([prompt, *(RowRules(1, keys) for keys in range(4, 9))])
    assert len(found) == 1 and found[0].mask is not None
    assert found[0].mask.high.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8]]


def test_what_one_rule_cannot_express_stays_apart() -> None:
    assert joined(RowRules(1, 5), RowRules(1, 4)) is None
    dense = mask((0, 5))
    apart = RowRules(1, 5, RowMask(dense.low, dense.high, dense=torch.ones(1, 1, 1, 5).bool()))
    assert joined(apart, RowRules(1, 6)) is None
    assert joined(RowRules(1, 5, None, RowBias(torch.ones(1, 1, 1, 5))), RowRules(1, 6)) is None


def test_biases_by_key_keep_the_longer_one() -> None:
    slope = torch.arange(6.0).view(1, 1, 1, 6)
    first = RowRules(1, 5, None, RowBias(slope[..., :5]))
    second = RowRules(1, 6, None, RowBias(slope))
    both = joined(first, second)
    assert both is not None and both.bias is second.bias and both.rows == 2


def test_biases_by_distance_become_diagonals() -> None:
    table = torch.tensor([9.0, 4.0, 1.0, 0.0])  # of the distances −3 … 0
    rows = [RowRules(1, n, None, RowBias(table[-n:].view(1, 1, 1, n))) for n in (2, 3, 4)]
    found = joined_rules(rows)
    assert len(found) == 1 and found[0].bias is not None
    spelled = found[0].bias.block(0, range(3), range(4))[0]
    for row, keys in enumerate((2, 3, 4)):
        assert torch.equal(spelled[row, :keys], table[-keys:])
