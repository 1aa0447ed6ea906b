"""How long rows are, and which batches a validation takes."""

from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import Batch
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import language_config
from clearhead.training.tasks.rows import row_length, validated_on

CONFIG = language_config("tiny", 31, context=640)


@pytest.mark.parametrize(
    ("settings", "tokens", "row"),
    [({"batch_tokens": 400}, 9999, 400), ({"batch_tokens": 4000}, 9999, 640),
     ({"batch_tokens": 400, "row": 50}, 9999, 50), ({"batch_tokens": 30, "row": 50}, 9999, 50),
     ({"batch_tokens": 400}, 100, 99)],
)  # fmt: skip
def test_rows(settings: dict[str, int], tokens: int, row: int) -> None:
    assert row_length(CONFIG, TrainingSettings(steps=1, **settings), tokens) == row  # type: ignore[arg-type]


def test_a_row_is_not_longer_than_the_context() -> None:
    with pytest.raises(InputError, match="a row of 641 tokens is longer than the model's context"):
        row_length(CONFIG, TrainingSettings(steps=1, row=641), 9999)


@pytest.mark.parametrize(
    ("most", "numbers"),
    [(None, list(range(10))), (70, list(range(10))), (35, [1, 3, 5, 7, 9]), (14, [2, 7]), (1, [5])],
)
def test_evenly_spaced_batches(most: int | None, numbers: list[int]) -> None:
    batches = [Batch(torch.full((1, 7), n), torch.full((1, 7), n)) for n in range(10)]
    taken = validated_on(batches, TrainingSettings(steps=1, validation_tokens=most))
    assert [int(batch.ids[0, 0]) for batch in taken] == numbers
