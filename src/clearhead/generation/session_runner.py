"""The runner of a session: it knows the token ids in its cache, and whether the cache is valid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.generation.runner import Runner


class SessionRunner:
    """Wraps another runner and records the token ids of every row.

    ``broken`` is True if the model was interrupted in the middle of a step: some layers then have
    the new tokens in their cache and others do not. ``replaced`` is True once a newer stream of
    the session uses the cache.
    """

    def __init__(self, runner: Runner, rows: list[list[int]] | None = None) -> None:
        self.runner = runner
        self.rows = rows or []
        self.vocab, self.context = runner.vocab, runner.context
        self.broken = self.replaced = False

    @property
    def length(self) -> int:
        """The number of tokens in the longest row."""
        return self.runner.length

    @property
    def lengths(self) -> list[int]:
        """The number of tokens in each row."""
        return self.runner.lengths

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add tokens to each row; return the logits after each row's last token."""
        with self._step(rows):
            return self.runner.extend(rows)

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; return the logits after each of them."""
        with self._step([ids]):
            return self.runner.extend_all(ids)

    def crop(self, length: int) -> None:
        """Drop all tokens from position ``length`` on."""
        with self._step([]):
            self.runner.crop(length)
            self.rows = [row[:length] for row in self.rows]

    def reorder(self, rows: list[int]) -> None:
        """Replace row i by the old row ``rows[i]``."""
        with self._step([]):
            self.runner.reorder(rows)
            self.rows = [list(self.rows[row]) for row in rows]

    def replace(self) -> SessionRunner:
        """Return a new runner on the same cache. This one raises an error at its next step."""
        self.replaced = True
        return SessionRunner(self.runner, self.rows)

    @contextmanager
    def _step(self, new: list[list[int]]) -> Iterator[None]:
        if self.replaced:
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
