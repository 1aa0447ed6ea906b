"""Several tokens for one step: guess them, check them all at once, keep the right ones."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from clearhead.generation.n_grams import NGrams
from clearhead.generation.runner import Runner


class SpeculatingRunner:
    """A runner of one row that runs ahead, along guesses from the text's own past.

    With each new token the model also gets the guessed next ones; that costs little more, since a
    step is bound by reading the weights. As long as the tokens that are then really chosen are the
    guessed ones, their logits are here already. At the first other one, the rest is forgotten.
    The logits given out are always those after the tokens that were really chosen: nothing is lost
    (Leviathan et al. 2023; guesses by prompt lookup, Saxena 2023).
    """

    def __init__(self, runner: Runner, most: int, held: list[int] | None = None) -> None:
        self.runner = runner
        self.vocab, self.context = runner.vocab, runner.context
        self.steps = 0  # how often the model ran
        self._most = self._count = most
        self._past = NGrams(held or [])
        self._ahead: list[tuple[int, Float[Tensor, " vocab"]]] = []  # a guess, the logits after it

    @property
    def length(self) -> int:
        """Tokens so far, guesses not counted."""
        return self.runner.length - len(self._ahead)

    @property
    def lengths(self) -> list[int]:
        """The same, as a list."""
        return [self.length]

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "1 vocab"]:
        """Add tokens to the row; logits after the last, run for or already known."""
        (ids,) = rows
        self._past.extend(ids)
        if len(ids) == 1 and self._ahead and self._ahead[0][0] == ids[0]:
            return self._ahead.pop(0)[1][None]
        self._forget_guesses()
        self.steps += 1
        guess = self._past.guess(self._room(len(ids))) if len(ids) == 1 else []
        if not guess:
            return self.runner.extend([ids])
        logits = self.runner.extend_all([*ids, *guess])
        self._ahead = list(zip(guess, logits[1:], strict=True))
        return logits[:1]

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the row; logits after each of them."""
        self._forget_guesses()
        self._past.extend(ids)
        return self.runner.extend_all(ids)

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on."""
        self._ahead = []
        self.runner.crop(length)
        self._past = NGrams(self._past.ids[:length])

    def reorder(self, rows: list[int]) -> None:
        """Nothing to do: there is one row."""

    def _forget_guesses(self) -> None:
        """Guesses that went wrong make the next guess shorter, good ones longer."""
        if self._ahead:
            self._count = max(1, self._count // 2)
            self.runner.crop(self.length)
            self._ahead = []
        else:
            self._count = min(self._most, self._count * 2)

    def _room(self, new: int) -> int:
        if self.context is None:
            return self._count
        return min(self._count, self.context - self.runner.length - new)
