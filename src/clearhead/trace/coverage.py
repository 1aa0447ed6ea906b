"""What was seen of a model and what was not, in words and as data."""

from __future__ import annotations

from clearhead.trace.module_stack import ModuleStack


class Coverage:
    """Attention modules that ran, and which of them were seen."""

    def __init__(self, stack: ModuleStack) -> None:
        self._stack = stack
        self.seen: set[str] = set()  # paths of modules with at least one call seen
        self.refused: dict[str, str] = {}  # path: why a call could not be reproduced

    @property
    def unseen(self) -> dict[str, str]:
        """Paths of attention modules that ran but were not seen, each with the reason."""
        silent = {
            path: "computes attention by itself" for path in self._ran() if path not in self.seen
        }
        reasons = {path: f"was refused: {reason}" for path, reason in self.refused.items()}
        return {**silent, **reasons}

    @property
    def missed(self) -> str:
        """ "23 of 24 attention modules watched; `x.y.z` computes attention by itself", or ""."""
        unseen = self.unseen
        if not unseen:
            return ""
        ran = set(self._ran()) | self.seen | set(unseen)
        reasons = [f"`{path}` {reason}" for path, reason in sorted(unseen.items())]
        shown = reasons[:3] + ([f"and {len(reasons) - 3} more"] if len(reasons) > 3 else [])
        return f"{len(ran) - len(unseen)} of {len(ran)} attention modules watched; " + "; ".join(
            shown
        )

    def __str__(self) -> str:
        ran = set(self._ran()) | self.seen
        return self.missed or f"{len(ran)} of {len(ran)} attention modules watched"

    def _ran(self) -> list[str]:
        return sorted(self._stack.ran)
