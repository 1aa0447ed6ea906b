from __future__ import annotations

from clearhead.views.terminal.gallery import salience_grid, small_maps
from tests.shared.golden_pictures import gallery


def test_the_grid_marks_the_chosen_head() -> None:
    parts = gallery()
    lines = [str(line) for line in salience_grid(parts.names, parts.salience, "L1H1", 80)]
    assert "◆" in lines[2] and sum(line.count("◆") for line in lines) == 1
    many = [[f"L{i}H0"] for i in range(100)]
    wide = [str(line) for line in salience_grid(many, [[0.5]] * 100, None, 50)]
    assert len(wide) == 6 and max(map(len, wide)) <= 50


def test_every_head_has_a_named_map() -> None:
    lines = [str(line) for line in small_maps(gallery(), 80)]
    assert [name for name in ("L0H0", "L0H2", "L1H1") if any(name in line for line in lines)] == [
        "L0H0",
        "L0H2",
        "L1H1",
    ]
    assert len(lines) == 2 * (1 + 3)
