from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.shared.patched_models import shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


def test_carriers_are_the_words_with_the_largest_share() -> None:
    states = np.zeros((3, 7))
    states[:, 2], states[:, 6] = (0.9, 0.8, 0.2), (0.1, 0.3, 1.0)
    found = replace(shown_patch_map().insight, states=states)
    assert list(found.carriers()) == [(2, 0, 1), (6, 2, 2)]
    assert found.label(2) == "cd/cx" and found.label(6) == "gh"


def test_the_strongest_head_is_first() -> None:
    found = shown_patch_map().insight
    shares = [abs(one.share) for one in found.strongest]
    assert shares == sorted(shares, reverse=True) and len(shares) == found.heads.size == 18
    layer, head = np.unravel_index(np.abs(found.heads).argmax(), found.heads.shape)
    assert found.strongest[0].name == f"L{layer}H{head}"


def test_a_wrong_whole_is_not_exact() -> None:
    assert shown_patch_map().exact
    assert not replace(shown_patch_map().insight, whole=0.99).exact
