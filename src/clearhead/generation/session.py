"""Sessions: the KV cache of the last text is kept, and a shared prefix is not computed again."""

from __future__ import annotations

from clearhead.arguments import flag
from clearhead.checkpoints.load import Loaded
from clearhead.generation.runner_factory import generative_model, make_runner
from clearhead.generation.session_runner import SessionRunner


class Session:
    """A model with the KV cache of its last text: pass it to ``generate`` in place of the model.

    If a prompt starts with the same tokens as the last text (a conversation that continues, a
    document with another question at its end), only the rest is computed. A session holds one text
    at a time: starting a new stream ends the older one. Batches and several samples do not use the
    cache.

    Args:
        loaded: the model, from ``ch.load``.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.

    Raises:
        InputError: the model is an encoder, which cannot generate.

    >>> import clearhead as ch
    >>> session = ch.Session(ch.load("dates"), engine=False)
    >>> "".join(event.text for event in ch.generate(session, "May 5, 2021"))
    '2021-05-05'
    >>> session
    Session('dates', 11 cached tokens, engine=False)
    """

    def __init__(self, loaded: Loaded, *, engine: bool | None = None) -> None:
        generative_model(loaded)
        engine = None if engine is None else flag("engine", engine)
        self.loaded = loaded
        self.engine = engine
        self._runner: SessionRunner | None = None
        self._source: list[int] | None = None

    def __repr__(self) -> str:
        """The model's name, the size of the cache, the engine setting."""
        cached = len(self.cached_ids)
        return f"Session({self.loaded.name!r}, {cached} cached tokens, engine={self.engine})"

    @property
    def cached_ids(self) -> list[int]:
        """The tokens whose keys and values are in the cache."""
        if self._runner is None or self._runner.broken or not self._runner.rows:
            return []
        return list(self._runner.rows[0])

    def reset(self) -> None:
        """Drop the cache."""
        self._runner = None

    def runner(self, ids: list[int], source: list[int] | None = None) -> SessionRunner:
        """Return a runner whose cache holds the longest known prefix of ``ids``, but not all.

        The last token is always left out: the logits after it have to be computed.
        """
        common = min(common_prefix(self.cached_ids, ids), len(ids) - 1)
        old = self._runner
        if old is None or old.broken or source != self._source:
            self._runner, self._source = self._new_runner(source), source
        else:
            self._runner = old.replace()
            if self._runner.length:
                self._runner.crop(common)
        return self._runner

    def _new_runner(self, source: list[int] | None) -> SessionRunner:
        sources = None if source is None else [source]
        return SessionRunner(make_runner(self.loaded, self.engine, sources=sources))


def common_prefix(first: list[int], second: list[int]) -> int:
    """Return the length of the common prefix of two token lists."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))
