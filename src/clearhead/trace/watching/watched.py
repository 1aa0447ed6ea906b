"""The result of ``watch``: the latest run, the earlier runs, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.trace.record import LayerRecord
from clearhead.trace.seen import Seen
from clearhead.trace.spill import Spill
from clearhead.trace.watching.coverage import Coverage
from clearhead.trace.watching.runs import Runs


class Watched(Seen):
    """The attention that one ``watch`` recorded.

    It shows the latest run, as every :class:`~clearhead.trace.seen.Seen` does. ``runs`` holds all
    of them, ``coverage`` and ``missed`` name the attention modules that could not be seen.
    """

    def __init__(
        self,
        runs: Runs,
        spill: Spill,
        coverage: Coverage,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._settle = settle  # records the steps that still wait
        super().__init__(runs.records, spill=spill)
        self._runs = runs
        self.coverage = coverage

    @property
    def records(self) -> list[LayerRecord]:
        """The layers of the latest run, as far as it has come."""
        self._settle()
        return self._records

    @records.setter
    def records(self, records: list[LayerRecord]) -> None:
        self._records = records

    @property
    def runs(self) -> list[Seen]:
        """Every run, oldest first; the last one is what ``seen`` itself shows."""
        self._settle()
        return [*(Seen(list(records), missed=self.missed) for records in self._runs.earlier), self]

    @property
    def nbytes(self) -> int:
        """The size of all runs in bytes, in memory and on the disk."""
        self._settle()
        earlier = (record for records in self._runs.earlier for record in records)
        return super().nbytes + sum(record.nbytes for record in earlier)

    def close(self) -> None:
        """Forget the records of every run, and remove the files of long traces."""
        super().close()
        self._runs.forget()

    def _parts(self) -> list[str]:
        self._settle()
        earlier, dropped = len(self._runs.earlier), self._runs.dropped
        shown = [f"the last of {earlier + dropped + 1} runs"] if earlier + dropped else []
        shown += [f"{dropped} of them not kept"] if dropped else []
        return [*super()._parts(), *shown]
