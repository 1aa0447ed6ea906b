"""Batches: shares of processes, parts of a share."""

from __future__ import annotations

import torch

from clearhead.training.data.batches.batch import IGNORED, Batch, PackedBatch


def test_rows_and_tokens() -> None:
    batch = Batch(torch.zeros(3, 5, dtype=torch.long), torch.tensor([[IGNORED] * 4 + [7]] * 3))
    assert (batch.rows, batch.tokens) == (3, 3)


def test_shares_take_every_third_row() -> None:
    ids = torch.arange(14).view(7, 2)
    batch = PackedBatch(ids, ids + 1, documents=ids, positions=None)
    share = batch.share(1, 3)
    assert share.ids.tolist() == [[2, 3], [8, 9]]
    assert share.documents is not None and share.documents.tolist() == [[2, 3], [8, 9]]
    assert share.positions is None


def test_a_process_without_a_row_predicts_nothing() -> None:
    ids = torch.arange(4).view(2, 2)
    share = Batch(ids, ids).share(2, 3)
    assert (share.rows, share.tokens) == (1, 0)


def test_parts_are_runs_of_rows() -> None:
    ids = torch.arange(14).view(7, 2)
    parts = Batch(ids, ids).parts(3)
    assert [part.rows for part in parts] == [3, 3, 1]
    assert torch.equal(torch.cat([part.ids for part in parts]), ids)
