from __future__ import annotations

import csv
import io
import json

import pytest

from tests.shared.patched_models import shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


def test_every_share_has_a_line() -> None:
    found = shown_patch_map()
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert len(rows) == 3 * found.states.size + found.heads.size + 1
    state = next(row for row in rows if row["part"] == "state" and row["donor_word"] == "cx")
    assert (state["layer"], state["word"]) == ("L0", "cd")
    assert float(state["share"]) == pytest.approx(found.states[0, 2], abs=1e-6)
    heads = {row["head"]: float(row["share"]) for row in rows if row["part"] == "head"}
    assert heads["L1H3"] == pytest.approx(found.heads[1, 3], abs=1e-6)


def test_json_has_the_maps() -> None:
    told = json.loads(shown_patch_map().json())
    assert told["insight"] == "PatchMap" and len(told["states"]) == 3
    assert told["heads"][2][5] == pytest.approx(shown_patch_map().heads[2, 5], abs=1e-4)
