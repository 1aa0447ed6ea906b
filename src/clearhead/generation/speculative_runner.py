"""Speculative decoding by prompt lookup: draft the next tokens from the text itself, run all of
them in one step, keep those that turn out right."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from clearhead.generation.runner import Runner

LENGTHS = (3, 2)  # of n-grams; a longer match is a better draft
MOST_DRAFTS = 256  # of one step: more would only be computed in vain


class NGrams:
    """An index of the n-grams of a text: n-gram → position of its latest continuation."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self.ids: list[int] = []
        self._continuations: dict[tuple[int, ...], int] = {}
        self.extend(ids)

    def extend(self, ids: Sequence[int]) -> None:
        """Add the next tokens of the text."""
        for id in ids:
            for length in LENGTHS:
                if len(self.ids) >= length:
                    self._continuations[tuple(self.ids[-length:])] = len(self.ids)
            self.ids.append(id)

    def draft(self, count: int) -> list[int]:
        """Return up to ``count`` tokens that may come next; none if nothing repeats."""
        for length in LENGTHS:
            position = self._continuations.get(tuple(self.ids[-length:]))
            if position is not None and len(self.ids) >= length:
                return self._continuation(position, count)
        return []

    def _continuation(self, position: int, count: int) -> list[int]:
        """The tokens from ``position`` on; after the end of the text the draft repeats itself."""
        draft: list[int] = []
        for step in range(position, position + count):
            draft.append(self.ids[step] if step < len(self.ids) else draft[step - len(self.ids)])
        return draft


class SpeculativeRunner:
    """A runner of one row that also runs draft tokens, taken from earlier in the text.

    With each new token the model also runs the drafts of the next ones. This costs little more,
    since the time of a step is bound by reading the weights. As long as the tokens that are then
    sampled equal the drafts, their logits are already known. At the first different token the
    remaining drafts are dropped. The returned logits are always those after the sampled tokens, so
    the text does not change (Leviathan et al. 2023; drafts by prompt lookup, Saxena 2023).

    Args:
        runner: the runner to use; it has one row.
        max_drafts: the largest number of draft tokens in one step.
        cached: the tokens that are already in the runner's cache.
    """

    def __init__(self, runner: Runner, max_drafts: int, cached: list[int] | None = None) -> None:
        self.runner = runner
        self.vocab, self.context = runner.vocab, runner.context
        self.steps = 0  # how often the model ran
        self._max_drafts = self._draft_count = min(max_drafts, MOST_DRAFTS)
        self._past = NGrams(cached or [])
        self._drafts: list[tuple[int, Float[Tensor, " vocab"]]] = []  # token, logits after it

    @property
    def length(self) -> int:
        """The number of tokens, without drafts."""
        return self.runner.length - len(self._drafts)

    @property
    def lengths(self) -> list[int]:
        """The same, as a list of one row."""
        return [self.length]

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "1 vocab"]:
        """Add tokens to the row; return the logits after the last, computed now or before."""
        (ids,) = rows
        self._past.extend(ids)
        if len(ids) == 1 and self._drafts and self._drafts[0][0] == ids[0]:
            return self._drafts.pop(0)[1][None]
        self._drop_drafts()
        self.steps += 1
        draft = self._past.draft(self._limit(len(ids))) if len(ids) == 1 else []
        if not draft:
            return self.runner.extend([ids])
        logits = self.runner.extend_all([*ids, *draft])
        self._drafts = list(zip(draft, logits[1:], strict=True))
        return logits[:1]

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the row; return the logits after each of them."""
        self._drop_drafts()
        self._past.extend(ids)
        return self.runner.extend_all(ids)

    def crop(self, length: int) -> None:
        """Drop all tokens from position ``length`` on."""
        self._drafts = []
        self.runner.crop(length)
        self._past = NGrams(self._past.ids[:length])

    def reorder(self, rows: list[int]) -> None:
        """Do nothing: there is one row."""

    def _drop_drafts(self) -> None:
        """Drop wrong drafts. The next draft is half as long then, otherwise twice as long."""
        if self._drafts:
            self._draft_count = max(1, self._draft_count // 2)
            self.runner.crop(self.length)
            self._drafts = []
        else:
            self._draft_count = min(self._max_drafts, self._draft_count * 2)

    def _limit(self, new: int) -> int:
        if self.context is None:
            return self._draft_count
        return min(self._draft_count, self.context - self.runner.length - new)
