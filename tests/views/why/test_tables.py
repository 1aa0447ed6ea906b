from __future__ import annotations

import csv
import json

import pytest

from tests.shared.explained_models import shown_why

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_table_adds_up() -> None:
    rows = list(csv.DictReader(shown_why().csv().splitlines()))
    heads = {row["name"]: float(row["value"]) for row in rows if row["part"] == "head"}
    for name, value in heads.items():
        edges = [row for row in rows if row["part"] == "edge" and row["name"] == name]
        assert sum(float(row["value"]) for row in edges) == pytest.approx(value, abs=1e-9)
    rest = [row for row in rows if row["part"] in ("feed-forward", "embedding", "bias")]
    (total,) = [float(row["value"]) for row in rows if row["part"] == "sum"]
    added = sum(heads.values()) + sum(float(row["value"]) for row in rest)
    assert added == pytest.approx(total, abs=1e-9)
    assert total == pytest.approx(shown_why().total)


def test_json_holds_everything() -> None:
    told = json.loads(shown_why().json())
    assert told["insight"] == "Why"
    assert told["total"] == pytest.approx(shown_why().total, abs=1e-9)
    assert len(told["heads"]) == 18 and len(told["effects"]["all"]) == 21
    assert told["proof"]["measured"] == pytest.approx(shown_why().proof.measured, abs=1e-9)
