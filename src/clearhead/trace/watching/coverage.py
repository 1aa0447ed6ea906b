"""What attention ran inside the watched model, and which of it was kept: by what happened."""

from __future__ import annotations

from collections import Counter

from clearhead.trace.missed import told_missed
from clearhead.trace.watching.module_stack import ModuleStack

ELSEWHERE = "ran in another thread or task, which the watch does not see"
BY_ITSELF = "computes attention by itself"


class Coverage:
    """Modules in which attention ran, and which of their calls were kept.

    Three things say that attention ran: a module of that name did; an attention kernel did, or a
    product, a softmax and a product (``happened``, counted by the kernels themselves); a door
    observed a call that it had to refuse.
    """

    def __init__(self, stack: ModuleStack) -> None:
        self._stack = stack
        self.seen: set[str] = set()  # paths of modules with at least one call seen
        self.kept: Counter[str] = Counter()  # calls, by path
        self.happened: Counter[str] = Counter()  # product, softmax, product: by path
        self.refused: dict[str, str] = {}  # path: why a call could not be reproduced
        self.why: dict[str, str] = {}  # path: what a softmax went over that nobody could follow
        self.elsewhere: set[str] = set()  # paths of modules that ran where nobody watched

    @property
    def unseen(self) -> dict[str, str]:
        """Paths of modules with attention that was not kept, each with the reason."""
        reasons = {path: BY_ITSELF for path in self._stack.ran if path not in self.seen}
        for path, count in self.happened.items():
            lost = count - self.kept[path]
            if lost > 0:
                of_many = f" in {lost} of {count} calls" if count > lost else ""
                reasons[path] = BY_ITSELF + of_many
        for path in reasons:
            reasons[path] += f": {self.why[path]}" if path in self.why else ""
        reasons |= dict.fromkeys(self.elsewhere, ELSEWHERE)
        return reasons | {path: f"was refused: {reason}" for path, reason in self.refused.items()}

    @property
    def missed(self) -> str:
        """ "23 of 24 attention modules watched; `x.y.z` computes attention by itself", or ""."""
        unseen = self.unseen
        if not unseen:
            return ""
        ran = self._all() | set(unseen)
        reasons = [f"`{path}` {reason}" for path, reason in sorted(unseen.items())]
        return told_missed(len(ran) - len(unseen), len(ran), reasons)

    def __str__(self) -> str:
        ran = self._all()
        if not ran and not self.unseen:
            return "no attention ran that watch knows of"
        return self.missed or f"{len(ran)} of {len(ran)} attention modules watched"

    def _all(self) -> set[str]:
        return self._stack.ran | self.seen
