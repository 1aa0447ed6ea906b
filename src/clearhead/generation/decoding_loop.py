"""The decoding loop: sample a token for each row, emit its event, run the model, repeat."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from clearhead.generation.event import Event, FinishReason
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.row import Row
from clearhead.generation.runner import Runner
from clearhead.generation.runner_factory import make_runner
from clearhead.generation.session import Session
from clearhead.generation.speculative_runner import SpeculativeRunner
from clearhead.generation.token_sampler import TokenSampler


@dataclass(frozen=True)
class DecodingLoop:
    """Generates several texts in one batch. A text that has ended leaves the batch."""

    session: Session
    prompts: PromptBatch
    sampler: TokenSampler
    ends: tuple[int, ...]
    speculate: int = 0

    def events(self, rows: list[Row]) -> Generator[Event, None, None]:
        """Yield an event for every token, until every text has ended."""
        runner, logits = self._prefill(rows)
        while True:
            unfinished = []
            for index, sampled in enumerate(self.sampler.sample(logits, rows)):
                row = rows[index]
                yield row.append(sampled.token, sampled.probability, sampled.alternatives)
                reason = self._finish_reason(row)
                if reason is None:
                    unfinished.append(index)
                else:
                    yield row.finish(reason)
            if not unfinished:
                return
            if len(unfinished) < len(rows):
                runner.reorder(unfinished)
                rows = [rows[index] for index in unfinished]
            logits = self._step(runner, rows)

    def _prefill(self, rows: list[Row]) -> tuple[Runner, Float[Tensor, "batch vocab"]]:
        """Run every prompt once, also if it gets several texts."""
        if len(rows) == 1:
            return self._prefill_from_session()
        session, ids = self.session, self.prompts.ids
        runner = make_runner(session.loaded, session.engine, sources=self.prompts.sources)
        logits = runner.extend(ids)
        if len(rows) > len(ids):
            order = [row.prompt_index for row in rows]
            runner.reorder(order)
            logits = logits[order]
        return runner, logits

    def _prefill_from_session(self) -> tuple[Runner, Float[Tensor, "batch vocab"]]:
        """Run the part of the only prompt that is not in the session's cache."""
        (ids,), sources = self.prompts.ids, self.prompts.sources
        runner = self.session.runner(ids, None if sources is None else sources[0])
        cached = runner.length
        if not self.speculate:
            return runner, runner.extend([ids[cached:]])
        speculative = SpeculativeRunner(runner, self.speculate, ids[:cached])
        return speculative, speculative.extend([ids[cached:]])

    def _finish_reason(self, row: Row) -> FinishReason | None:
        """The reason why this text has ended; None if it has not."""
        if row.stop_strings.found is not None:
            return "stop-string"
        if row.ids[-1] in self.ends:
            return "stop-token"
        if len(row.ids) >= row.limit:
            return "max-tokens"
        return "context" if self.prompts.exceeds_context(row) and not self.prompts.slides else None

    def _step(self, runner: Runner, rows: list[Row]) -> Float[Tensor, "batch vocab"]:
        """Run the newest token of each row. If one exceeds the context, run all windows anew."""
        if not any(self.prompts.exceeds_context(row) for row in rows):
            return runner.extend([row.window[-1:] for row in rows])
        for row in rows:
            self.prompts.slide(row)
        runner.crop(0)
        return runner.extend([row.window for row in rows])
