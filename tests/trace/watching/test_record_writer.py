from __future__ import annotations

import torch
from torch import nn

from clearhead.trace.spill import Spill
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.record_writer import RecordWriter, _is_safe
from clearhead.trace.watching.runs import Runs
from tests.trace.watching.test_recorder import call

PLACE = Frame("block.0", nn.Identity(), True, False)


def writer(runs: Runs, layers: str | None = None) -> RecordWriter:
    names = LayerNames({"block.0": nn.Identity()})
    wanted = LayerFilter(layers, None)
    return RecordWriter(names, wanted, runs, Spill(), False, lambda: None)


def test_a_call_is_written_under_its_name_with_its_notes() -> None:
    runs = Runs()
    writing, observed = writer(runs), call()
    writing.add(PLACE, observed, False, writing.prepared(PLACE, observed, False, 1))
    [record] = runs.records
    assert (record.facts.name, record.facts.path) == ("L0", "block.0")
    assert record.facts.note == "weights before dropout" and record.value is None
    assert writing.written_over() == set()


def test_layers_that_are_not_wanted_are_not_written() -> None:
    runs, observed = Runs(), call()
    writing = writer(runs, "L3")
    writing.add(PLACE, observed, False, writing.prepared(PLACE, observed, False, 1))
    assert runs.records == []


def test_what_is_kept_without_a_copy_and_written_to_is_found() -> None:
    runs, observed = Runs(), call()
    writing = writer(runs)
    writing.add(PLACE, observed, False, writing.prepared(PLACE, observed, False, 1))
    observed.query.mul_(2)
    assert writing.written_over() == {"block.0"}
    assert writing.written_over() == set()  # said once


def test_only_fresh_tensors_are_kept_without_a_copy() -> None:
    tensor = torch.zeros(4, 5)
    assert _is_safe(tensor) and not _is_safe(tensor[:1])
    tensor += 1
    assert not _is_safe(tensor)
