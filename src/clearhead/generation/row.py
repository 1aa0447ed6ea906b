"""One text of a batch while it is generated: its tokens, its stream of text, its end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from clearhead.generation.event import Alternative, Event, FinishReason
from clearhead.generation.stop_strings import StopStrings
from clearhead.text.stream_decoder import StreamDecoder


@dataclass
class Row:
    """A prompt and the text that is generated after it."""

    prompt_index: int
    sample: int  # index among the texts of one prompt
    prompt: list[int]
    window: list[int]  # the tokens of prompt and text that are in the model's context
    stream: StreamDecoder | None  # None if there is no tokenizer
    stop_strings: StopStrings
    generator: random.Random
    limit: int  # the largest number of tokens
    ids: list[int] = field(default_factory=list)  # the generated tokens

    def append(
        self, token: int, probability: float, alternatives: tuple[Alternative, ...]
    ) -> Event:
        """Add a generated token; return its event."""
        self.ids.append(token)
        self.window.append(token)
        piece = "" if self.stream is None else self.stream.push(token)
        text = self.stop_strings.push(piece)
        return Event(text, token, probability, alternatives, self.prompt_index, self.sample)

    def finish(self, reason: FinishReason) -> Event:
        """Return the last event, with the text that was held back."""
        rest = "" if self.stream is None else self.stream.flush()
        text = self.stop_strings.push(rest) + self.stop_strings.flush()
        if self.stop_strings.found is not None:
            reason = "stop-string"
        return Event(text, row=self.prompt_index, sample=self.sample, finish=reason)
