from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.trace.zoom import heads
from clearhead.trace.zoom.heads import RowLogs, ZoomHeads
from tests.shared.synthetic import Options, synthetic
from tests.trace.zoom.zoomed import made, view_of


def test_blocks_that_nobody_sees_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "BLOCK_ROWS", 8)
    monkeypatch.setattr(heads, "BLOCK_COLUMNS", 8)
    found = ZoomHeads(view_of(made("causal"), "L0H0"), "max")
    computed: list[tuple[int, int]] = []
    plain = found._numbers

    def counted(head: object, logs: object, block: tuple[range, range], level: int) -> object:
        computed.append((block[0].start, block[1].start))
        return plain(head, logs, block, level)  # type: ignore[arg-type]

    monkeypatch.setattr(found, "_numbers", counted)
    found.cells(range(64), range(64), 1)
    assert sorted(computed) == [(r, c) for r in range(0, 64, 8) for c in range(0, r + 1, 8)]


def test_what_a_row_is_divided_by_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "BAND", 8)
    logs = RowLogs(ZoomHeads(view_of(made("large scores"), "L0H0"), "max").heads[0], None)
    first = logs.of(range(5, 21))
    monkeypatch.setattr(logs, "_computed", None)
    assert (logs.of(range(8, 24))[:13] == first[3:]).all()


def test_weights_by_value_need_values() -> None:
    view = view_of(synthetic(Options(values=False)), "L0H0")
    with pytest.raises(InputError, match="needs the values"):
        ZoomHeads(view, "max", by_value=True)
