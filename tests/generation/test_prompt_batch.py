"""The batch of prompts: its rows, and the limit of the context."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.prompt_batch import PromptBatch, check_fits, keep_latest_half


def test_a_row_for_each_sample_of_each_prompt(wordy: Loaded) -> None:
    rows = PromptBatch.of(wordy, [[5, 6], [7]]).rows(wordy, 3, ("x",), 11, [13, 17])
    assert [(row.prompt_index, row.sample) for row in rows] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2),
    ]  # fmt: skip
    assert rows[3].prompt == rows[3].window == [7]
    assert rows[3].window is not rows[3].prompt
    draws = [row.generator.random() for row in rows]
    assert draws[:3] == draws[3:]  # the same seed for the same sample of every prompt
    assert len(set(draws)) == 3
    assert [row.limit for row in rows] == [13, 13, 13, 17, 17, 17]


def test_an_encoder_decoder_reads_the_prompts_as_sources(tiny: Any) -> None:
    loaded = tiny("bart").loaded
    batch = PromptBatch.of(loaded, [[5, 6], [7]])
    assert batch.sources == [[5, 6], [7]]
    assert batch.ids == [[loaded.config.start]] * 2
    with pytest.raises(InputError, match="a source is read whole"):
        PromptBatch.of(loaded, [5], slide=True)


def test_the_latest_half_of_the_context_stays_with_its_bos() -> None:
    assert keep_latest_half([1, 2, 3, 4, 5, 6, 7], 6, bos=1) == [1, 6, 7]
    assert keep_latest_half([1, 2, 3, 4, 5, 6, 7], 6, bos=None) == [5, 6, 7]
    assert keep_latest_half([9, 2, 3, 4, 5, 6, 7], 6, bos=1) == [5, 6, 7]
    assert keep_latest_half([1, 2], 6, bos=1) == [1, 2]
    assert keep_latest_half([1, 2, 3], 1, bos=None) == [3]


def test_a_prompt_longer_than_the_context(wordy: Loaded) -> None:
    check_fits([5] * 61, 61)
    check_fits([5] * 999, None)
    with pytest.raises(InputError, match="has 62 tokens, and this model's context holds 61"):
        PromptBatch.of(wordy, [5] * 62)
    assert PromptBatch.of(wordy, [*range(100, 162)], slide=True).ids == [[*range(132, 162)]]


def test_a_row_slides_when_it_exceeds_the_context(wordy: Loaded) -> None:
    batch = PromptBatch.of(wordy, [5] * 61, slide=True)
    (row,) = batch.rows(wordy, 1, (), 0, [17])
    assert not batch.exceeds_context(row)
    batch.slide(row)
    assert len(row.window) == 61
    row.append(7, 0.5, ())
    assert batch.exceeds_context(row)
    batch.slide(row)
    assert row.window == [5] * 29 + [7]
    assert row.ids == [7] and len(row.prompt) == 61
