from __future__ import annotations

from torch import nn

from clearhead.trace.watching.coverage import Coverage
from clearhead.trace.watching.module_stack import ModuleStack


def coverage() -> Coverage:
    stack = ModuleStack(nn.Sequential(nn.Linear(2, 2)), lambda *_: None)
    stack.close()
    stack.ran = {"0.attention", "1.attention"}
    return Coverage(stack)


def test_modules_that_ran_and_were_not_seen_are_named() -> None:
    covered = coverage()
    covered.seen = {"0.attention"}
    assert covered.missed == (
        "1 of 2 attention modules watched; `1.attention` computes attention by itself"
    )
    covered.seen.add("1.attention")
    assert covered.missed == "" and str(covered) == "2 of 2 attention modules watched"
    covered.refused["1.attention"] = "odd"
    assert covered.unseen == {"1.attention": "was refused: odd"}


def test_calls_that_happened_are_counted() -> None:
    covered = coverage()
    covered.seen = {"0.attention", "1.attention"}
    covered.happened.update({"0.attention": 3, "2.mixer": 1})
    covered.kept.update({"0.attention": 1})
    assert covered.unseen == {
        "0.attention": "computes attention by itself in 2 of 3 calls",
        "2.mixer": "computes attention by itself",
    }
    covered.why["2.mixer"] = "odd"
    assert covered.unseen["2.mixer"] == "computes attention by itself: odd"
    covered.elsewhere.add("1.attention")
    assert "another thread" in covered.unseen["1.attention"]


def test_nothing_ran_is_not_nothing_missed() -> None:
    covered = coverage()
    covered._stack.ran = set()
    assert str(covered) == "no attention ran that watch knows of"
