from __future__ import annotations

from clearhead.trace.record import LayerRecord
from clearhead.trace.watching.new_rows import NewRows
from clearhead.trace.watching.runs import PassedOver, Runs
from tests.trace.watching.test_stitching import KEYS, keep, record_of, rows


def test_runs_and_shared_modules() -> None:
    runs, occurrences = Runs(), []

    def add(new: NewRows) -> LayerRecord | None:
        def new_record(occurrence: int) -> LayerRecord:
            occurrences.append(occurrence)
            return record_of(new)

        return runs.add("layer", new, keep, new_record)

    first = add(rows(KEYS[:, :, :7], 7, forward=1))
    second = add(rows(KEYS[:, :, :7] * 2, 7, forward=1))  # the module again: another layer
    assert occurrences == [0, 1] and runs.records == [first, second]
    assert add(rows(KEYS[:, :, :8], 1, forward=2)) is first
    assert add(rows(KEYS[:, :, :5], 5, forward=3)) not in (first, second)
    assert runs.earlier == [[first, second]] and runs.first_forward == 3
    assert len(runs.records) == 1 and occurrences == [0, 1, 0]
    runs.forget()
    assert runs.records == [] and runs.earlier == []


def test_only_the_latest_runs_are_kept() -> None:
    runs = Runs(most=2)
    for forward in range(1, 5):
        new = rows(KEYS[:, :, :7] * forward, 7, forward=forward)
        runs.add("layer", new, keep, lambda _, new=new: record_of(new))  # type: ignore[misc]
    assert len(runs.earlier) == 1 and runs.dropped == 2


def test_layers_that_are_not_wanted_are_counted() -> None:
    passed = PassedOver(rows(KEYS[:, :, :7], 7, forward=1))
    assert not passed.takes(KEYS[:, :, :7] * 2, 7, 1)  # a second call of the same forward
    assert passed.takes(KEYS[:, :, :8], 1, 1) and passed.takes(KEYS[:, :, :3], 3, 2)
