from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.worked_examples import worked_example


def rounded(numbers: tuple[float, ...]) -> list[float]:
    return [round(number, 2) + 0.0 for number in numbers]


def test_selfish_gives_the_textbooks_numbers() -> None:
    (table,) = worked_example("selfish")
    assert [row.score for row in table.rows] == [1, 3, -2, -3]
    assert rounded(tuple(row.weight for row in table.rows)) == [0.12, 0.87, 0.01, 0.0]
    assert rounded(table.output) == [0.98, 0.01, -0.75]
    assert table.scale_name == "score"


def test_the_first_row_of_the_batch_is_the_single_case() -> None:
    single, batch = worked_example("selfish")[0], worked_example("batch")
    assert len(batch) == 3
    assert batch[0].output == single.output
    # keys [-2 -1 0], [1 0 -1], [-1 1 0], [-1 -3 1] with query [-2 1 -1], by hand
    assert [row.score for row in batch[1].rows] == [3, -1, 3, -2]
    # keys [2 3 9], [1 4 3], [-1 0 5], [-1 -2 0] with query [1 1 1]
    assert [row.score for row in batch[2].rows] == [14, 8, 4, -3]


def test_action_gets_results_for_every_word() -> None:
    tables = worked_example("action")
    assert [table.word for table in tables] == ["Action", "gets", "results"]
    for table in tables:
        assert [row.word for row in table.rows] == ["Action", "gets", "results"]
        assert table.scale_name == "score/2"
        assert sum(row.weight for row in table.rows) == pytest.approx(1.0)
        for row in table.rows:
            assert row.scaled == pytest.approx(row.score / 2)
            by_hand = sum(q * k for q, k in zip(table.query, row.key, strict=True))
            assert row.score == pytest.approx(by_hand)
        summed = [sum(column) for column in zip(*(row.weighted for row in table.rows), strict=True)]
        assert summed == pytest.approx(list(table.output))
    # c = [1 0 1 0], p = [0 1 0 1] at position 0, so c + p = [1 1 1 1] and q = [2 2 2 2]
    assert tables[0].query == (2, 2, 2, 2)


def test_an_unknown_example_is_named() -> None:
    with pytest.raises(InputError, match="no worked example 'nothing'; there are selfish, batch"):
        worked_example("nothing")
