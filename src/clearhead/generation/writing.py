"""The loop of generation: choose, tell, run the model, again."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from clearhead.generation.choice import Chooser
from clearhead.generation.choose import runner_for
from clearhead.generation.event import Event, FinishReason
from clearhead.generation.row import Row
from clearhead.generation.runner import Runner
from clearhead.generation.session import Session
from clearhead.generation.speculating_runner import SpeculatingRunner
from clearhead.generation.starts import Starts


@dataclass(frozen=True)
class Writing:
    """Texts in the making, side by side in one batch; whichever ends leaves it."""

    session: Session
    starts: Starts
    chooser: Chooser
    max_tokens: int
    speculate: int = 0

    def events(self, rows: list[Row]) -> Generator[Event, None, None]:
        """Token by token until every text has ended."""
        runner, logits = self._begin(rows)
        while True:
            going = []
            for place, choice in enumerate(self.chooser.choose(logits, rows)):
                row = rows[place]
                yield row.take(choice.token, choice.probability, choice.alternatives)
                reason = self._reason(row)
                if reason is None:
                    going.append(place)
                else:
                    yield row.finish(reason)
            if not going:
                return
            if len(going) < len(rows):
                runner.reorder(going)
                rows = [rows[place] for place in going]
            logits = self._advance(runner, rows)

    def _begin(self, rows: list[Row]) -> tuple[Runner, Float[Tensor, "batch vocab"]]:
        """Run the prompts, each of them once, however many texts it gets."""
        if len(rows) == 1:
            return self._begin_alone()
        session, ids = self.session, self.starts.ids
        runner = runner_for(session.loaded, session.engine, sources=self.starts.sources)
        logits = runner.extend(ids)
        if len(rows) > len(ids):
            order = [row.number for row in rows]
            runner.reorder(order)
            logits = logits[order]
        return runner, logits

    def _begin_alone(self) -> tuple[Runner, Float[Tensor, "batch vocab"]]:
        """Run what the session does not know yet."""
        (ids,), sources = self.starts.ids, self.starts.sources
        known = self.session.runner(ids, None if sources is None else sources[0])
        held = known.length
        if not self.speculate:
            return known, known.extend([ids[held:]])
        ahead = SpeculatingRunner(known, self.speculate, ids[:held])
        return ahead, ahead.extend([ids[held:]])

    def _reason(self, row: Row) -> FinishReason | None:
        """Why this text has ended, if it has."""
        if row.stops.found is not None:
            return "stop-string"
        if row.ids[-1] in self.session.loaded.config.eos:
            return "stop-token"
        if len(row.ids) >= self.max_tokens:
            return "max-tokens"
        return "context" if self.starts.full(row) and not self.starts.slides else None

    def _advance(self, runner: Runner, rows: list[Row]) -> Float[Tensor, "batch vocab"]:
        """Run the newest token of each row; where one was full, what all of them still hold."""
        if not any(self.starts.full(row) for row in rows):
            return runner.extend([row.window[-1:] for row in rows])
        for row in rows:
            self.starts.shorten(row)
        runner.crop(0)
        return runner.extend([row.window for row in rows])
