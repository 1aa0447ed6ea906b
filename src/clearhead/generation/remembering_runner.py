"""A runner that knows which tokens it holds, and whether they can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.generation.runner import Runner


class RememberingRunner:
    """Another runner, with the ids of every row.

    ``broken`` is set when the model was interrupted in the middle of a step: some layers have the
    new tokens then and some do not. ``ended`` is set when somebody else took the runner over.
    """

    def __init__(self, runner: Runner, rows: list[list[int]] | None = None) -> None:
        self.runner = runner
        self.rows = rows or []
        self.vocab, self.context = runner.vocab, runner.context
        self.broken = self.ended = False

    @property
    def length(self) -> int:
        """Tokens so far, in the longest row."""
        return self.runner.length

    @property
    def lengths(self) -> list[int]:
        """Tokens so far, in each row."""
        return self.runner.lengths

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add tokens to each row; logits after the last."""
        with self._step(rows):
            return self.runner.extend(rows)

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; logits after each of them."""
        with self._step([ids]):
            return self.runner.extend_all(ids)

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on."""
        with self._step([]):
            self.runner.crop(length)
            self.rows = [row[:length] for row in self.rows]

    def reorder(self, rows: list[int]) -> None:
        """Make row i what row ``rows[i]`` was."""
        with self._step([]):
            self.runner.reorder(rows)
            self.rows = [list(self.rows[row]) for row in rows]

    def taken_over(self) -> RememberingRunner:
        """The same for a new user; whoever used this one is told at the next step."""
        self.ended = True
        return RememberingRunner(self.runner, self.rows)

    @contextmanager
    def _step(self, new: list[list[int]]) -> Iterator[None]:
        if self.ended:
            raise InputError(
                "this stream has ended: a newer one was started on the same session.",
                hint="read a stream to its end, or use a session for each.",
            )
        self.broken = True
        yield
        self.broken = False
        self.rows = self.rows or [[] for _ in new]
        for row, ids in zip(self.rows, new, strict=False):
            row.extend(ids)
