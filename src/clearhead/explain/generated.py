"""Generated tokens, each with its sources: the words that the model attended to for it."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.explain.pictures import Mark, Source, shown_number
from clearhead.explain.salience import SalienceAxes, WeightsOf, agreement
from clearhead.trace.passage import Passage

SHOWN = 3  # sources of a token
WEAKEST = 0.005  # a source that would be shown as 0.00 is none


@dataclass(frozen=True)
class GeneratedText:
    """A text with everything that was generated; the last token was not read by the model."""

    passage: Passage
    prompt: int  # number of tokens before the generated ones
    probabilities: tuple[float | None, ...]  # of each generated token


@dataclass(frozen=True)
class GeneratedToken:
    """One generated token. The query that predicted it is the token before it."""

    text: str
    position: int  # of the token in the text
    probability: float | None
    sources: tuple[Source, ...]  # the most salient first (explain/salience.py)


def generated_tokens(
    written: GeneratedText,
    marks: tuple[Mark, ...],
    axes: SalienceAxes,
    layers: list[str],
    weights_of: WeightsOf,
) -> tuple[GeneratedToken, ...]:
    """Return every generated token with its sources.

    ``marks`` are those of the text's tokens; ``axes`` has a row for each token that was read.
    """
    count = len(written.passage.tokens)
    rows = [place - 1 for place in range(written.prompt, count)]
    if not rows:
        return ()
    found = agreement(axes, layers, weights_of, rows)
    tokens = []
    for number, place in enumerate(range(written.prompt, count)):
        sources = tuple(
            Source(column, axes.columns[column], shown_number(weight), None, head)
            for column, weight, head in found.sources(number, SHOWN)
            if weight >= WEAKEST
        )
        tokens.append(
            GeneratedToken(marks[place].text, place, written.probabilities[number], sources)
        )
    return tuple(tokens)
