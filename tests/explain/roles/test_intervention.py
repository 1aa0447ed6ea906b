from __future__ import annotations

from tests.shared.role_models import planted_roles


def test_ablating_a_head_that_others_use_changes_the_model() -> None:
    effects = {(e.head, e.way): e for e in planted_roles(True).effects}
    used, unused = effects["L0H0", "zero"], effects["L0H2", "zero"]
    assert used.measure == "loss" and abs(used.at_cases.mean) > 0.1
    assert unused.at_cases.mean == 0.0  # its W_O is zero: it looks, and does nothing
    states = {(e.head, e.way): e for e in planted_roles(False).effects}["L0H0", "mean"]
    assert states.measure == "states"
    assert states.at_cases.mean > states.elsewhere.mean > 0
