"""One text in the making: its tokens so far, what of it may be shown, and when it ends."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from clearhead.generation.event import Alternative, Event, FinishReason
from clearhead.generation.stop_strings import StopStrings
from clearhead.text.stream_decoder import StreamDecoder


@dataclass
class Row:
    """A prompt and the text that is written after it."""

    number: int  # which prompt
    sample: int  # which of several texts for it
    prompt: list[int]
    window: list[int]  # what the model sees of prompt and text
    stream: StreamDecoder | None  # None where there is no tokenizer
    stops: StopStrings
    chance: random.Random
    ids: list[int] = field(default_factory=list)

    def take(self, token: int, probability: float, others: tuple[Alternative, ...]) -> Event:
        """Write one more token."""
        self.ids.append(token)
        self.window.append(token)
        piece = "" if self.stream is None else self.stream.push(token)
        text = self.stops.push(piece)
        return Event(text, token, probability, others, self.number, self.sample)

    def finish(self, reason: FinishReason) -> Event:
        """The end, with the text that was held back."""
        rest = "" if self.stream is None else self.stream.flush()
        text = self.stops.push(rest) + self.stops.flush()
        if self.stops.found is not None:
            reason = "stop-string"
        return Event(text, row=self.number, sample=self.sample, finish=reason)
