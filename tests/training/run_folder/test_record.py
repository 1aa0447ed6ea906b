"""run.json: read as it was written, or refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError, ClearheadError
from clearhead.training.plan import Plan
from clearhead.training.run_folder.checksum import DamagedError, checksum_of_json
from clearhead.training.run_folder.record import FORMAT, RunRecord

RECORD = RunRecord(
    plan=Plan(texts=("/a.txt",), model={"layers": 3}, settings={"steps": 7}, fingerprint="f"),
    model={"kind": "decoder", "layers": 3},
    files={"texts.jsonl": "0" * 64},
)


def test_there_and_back(tmp_path: Path) -> None:
    RECORD.write(tmp_path / "run.json")
    assert RunRecord.read(tmp_path / "run.json") == RECORD
    laid_out = json.dumps(json.loads((tmp_path / "run.json").read_text()))
    (tmp_path / "run.json").write_text(laid_out)  # another lay-out of the same is the same
    assert RunRecord.read(tmp_path / "run.json") == RECORD


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    path, generator = tmp_path / "run.json", random.Random(3)
    RECORD.write(path)
    sound = path.read_bytes()
    for place in range(len(sound)):
        for bit in generator.sample(range(8), 3):
            broken = bytearray(sound)
            broken[place] ^= 1 << bit
            path.write_bytes(broken)
            with pytest.raises(CheckpointError):
                RunRecord.read(path)


def forge(path: Path, content: dict[str, Any]) -> None:
    """A run.json with a right checksum."""
    path.write_text(json.dumps(content | {"sha256": checksum_of_json(content)}))


def test_a_changed_value_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    RECORD.write(path)
    path.write_text(path.read_text().replace('"steps": 7', '"steps": 8'))
    with pytest.raises(DamagedError, match="is damaged or was changed") as error:
        RunRecord.read(path)
    assert error.value.hint is not None and "--from" in error.value.hint


def test_other_versions(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(Plan().to_fields()))  # as it was before there were checksums
    with pytest.raises(CheckpointError, match="of an earlier version of clearhead") as error:
        RunRecord.read(path)
    assert error.value.hint is not None and "--from" in error.value.hint
    forge(path, {"format": FORMAT + 1, "plan": {}})
    with pytest.raises(CheckpointError, match=f"is of format {FORMAT + 1}, and this version"):
        RunRecord.read(path)


BAD: tuple[Any, ...] = (
    None, True, -1, 2**70, 1.5, float("inf"), "", "a", "\ud800", [], [None], [[]], {}, {"a": []},
    "../../etc", ["/dev/zero"],
)  # fmt: skip


@pytest.mark.parametrize("field", sorted(Plan().to_fields()))
def test_every_field_of_the_plan_with_bad_values(field: str, tmp_path: Path) -> None:
    """Right checksums, wrong values: read with the right types, or one of our errors."""
    path = tmp_path / "run.json"
    for value in BAD:
        plan = RECORD.plan.to_fields() | {field: value}
        forge(path, {"format": FORMAT, "plan": plan, "model": {}, "files": {}})
        try:
            read = getattr(RunRecord.read(path).plan, field)
        except ClearheadError:
            continue
        assert type(read) in (type(value), tuple, float)
