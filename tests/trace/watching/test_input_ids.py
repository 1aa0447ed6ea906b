from __future__ import annotations

import torch

from clearhead.text.words import WordTokenizer
from clearhead.trace.watching.input_ids import InputIds, _are_ids, _joined
from clearhead.trace.watching.runs import Runs


def test_what_counts_as_ids() -> None:
    assert _are_ids(torch.zeros(2, 3, dtype=torch.long))
    for other in (torch.zeros(2, 3), torch.zeros(3).long(), torch.zeros(2, 3).bool(), [[1]], None):
        assert not _are_ids(other)


def test_ids_by_position_name_and_mapping() -> None:
    one, two = torch.tensor([[1, 2]]), torch.tensor([[3]])
    single = InputIds(two_stacks=False)
    single.read(1, False, (one,), {})
    single.read(2, False, (), {"input_ids": two})
    single.read(3, False, ({"input_ids": one},), {})
    assert [ids.tolist() for ids in single._text.values()] == [[[1, 2]], [[3]], [[1, 2]]]
    both = InputIds(two_stacks=True)
    both.read(1, False, (one, two), {})
    both.read(2, True, (one,), {})
    assert both._text[1].tolist() == [[3]] and both._source[1].tolist() == [[1, 2]]
    assert both._source[2].tolist() == [[1, 2]] and 2 not in both._text


def test_ids_are_copied_and_joined_from_the_latest_run_on() -> None:
    ids, runs = torch.tensor([[7], [8]]), Runs()
    single = InputIds(two_stacks=False)
    for forward in (1, 2, 3):
        single.read(forward, False, (ids,), {})
        ids += 10
    runs.first_forward = 2
    joined = _joined(single._text, runs)
    assert joined is not None and joined.tolist() == [[17, 27], [18, 28]]
    assert InputIds(False).labels(WordTokenizer, runs) is not None
