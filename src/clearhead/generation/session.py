"""A session: a model that remembers its last text, so that what is the same is not run again."""

from __future__ import annotations

from clearhead.checkpoints.load import Loaded
from clearhead.generation.choose import runner_for, writer
from clearhead.generation.remembering_runner import RememberingRunner


class Session:
    """Give it to :func:`clearhead.generate` in place of the model, again and again.

    A prompt that begins like the text before (a conversation that goes on, a document with another
    question at its end) is run from where it differs. One text at a time: a new one ends the
    stream of the old one. Batches and several samples are run without a memory.
    """

    def __init__(self, loaded: Loaded, *, engine: bool | None = None) -> None:
        writer(loaded)
        self.loaded = loaded
        self.engine = engine
        self._runner: RememberingRunner | None = None
        self._source: list[int] | None = None

    @property
    def held(self) -> list[int]:
        """The tokens whose keys and values are kept."""
        if self._runner is None or self._runner.broken or not self._runner.rows:
            return []
        return list(self._runner.rows[0])

    def reset(self) -> None:
        """Forget everything."""
        self._runner = None

    def runner(self, ids: list[int], source: list[int] | None = None) -> RememberingRunner:
        """A runner that holds as much of the beginning of ``ids`` as is known, but not all.

        The last token always has to be run: the logits after it are what is wanted.
        """
        common = min(common_beginning(self.held, ids), len(ids) - 1)
        old = self._runner
        if old is None or old.broken or source != self._source:
            self._runner, self._source = self._fresh(source), source
        else:
            self._runner = old.taken_over()
            if self._runner.length:
                self._runner.crop(common)
        return self._runner

    def _fresh(self, source: list[int] | None) -> RememberingRunner:
        sources = None if source is None else [source]
        return RememberingRunner(runner_for(self.loaded, self.engine, sources=sources))


def common_beginning(one: list[int], other: list[int]) -> int:
    """How many tokens two texts share at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
