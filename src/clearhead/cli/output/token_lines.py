"""Generated tokens, a line each: the token, its probability, and what could have come instead."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clearhead.cli.printing import console, write

if TYPE_CHECKING:
    from rich.text import Text

    from clearhead.checkpoints.load import Loaded
    from clearhead.generation.event import Alternative, Event

ALTERNATIVES = 4  # that are shown if no number is given
TOKEN, BAR = 16, 10  # columns
BETWEEN = " · "
LEAST_LOG = math.log2(5e-324)  # of a probability that is 0 in float64


@dataclass
class _Written:
    """One text while it is shown."""

    text: str = ""
    bits: list[float] = field(default_factory=list)

    def add(self, event: Event) -> None:
        self.text += event.text
        if event.probability is not None:
            log = math.log2(event.probability) if event.probability > 0 else LEAST_LOG
            self.bits.append(-log)

    def summary(self, sample: str, end: str) -> str:
        mean = f", {sum(self.bits) / len(self.bits):.2f} bits a token" if self.bits else ""
        return f"── {sample}{end} after {len(self.bits)} tokens{mean} ──"


def show_tokens(events: Generator[Event, None, None], loaded: Loaded, samples: int) -> None:
    """Print a line for each token as it comes, and each text when it ends."""
    terminal = console()
    texts: dict[int, _Written] = {}

    def named(sample: int) -> str:
        return f"sample {sample}: " if samples > 1 else ""

    try:
        for event in events:
            written = texts.setdefault(event.sample, _Written())
            written.add(event)
            if event.token is not None:
                terminal.print(token_line(event, loaded, terminal.width, samples > 1))
            if event.finish is not None:
                write(f"{texts.pop(event.sample).summary(named(event.sample), event.finish)}")
                write(written.text)
    except KeyboardInterrupt:
        for sample, written in texts.items():
            write(f"{written.summary(named(sample), 'interrupted')}\n{written.text}")
        raise
    finally:
        events.close()


def token_line(event: Event, loaded: Loaded, width: int, numbered: bool) -> Text:
    """The line of one token: at most ``width`` columns, at least those of token and number."""
    from rich.text import Text

    from clearhead.explain.why.target import token_text
    from clearhead.views.numbers import share_text
    from clearhead.views.terminal.parts import ACCENT, QUIET, bar, ink, padded
    from clearhead.views.terminal.predictions import shown_token

    assert event.token is not None and event.probability is not None
    line = Text(f"#{event.sample:<4}" if numbered else "  ", style="", no_wrap=True)
    line.append(padded(shown_token(token_text(loaded, event.token)), TOKEN), style=ACCENT)
    line.append(f" {share_text(event.probability):>6} ")
    line.append(padded(bar(event.probability, BAR), BAR), style=ink(event.probability))
    others = [one for one in event.alternatives if one.token != event.token]
    line.append(f"  {_fitting(others, width - line.cell_len - 2)}", style=QUIET)
    line.rstrip()
    return line


def _fitting(others: Iterable[Alternative], room: int) -> str:
    """So many alternatives as fit, each whole."""
    from rich.cells import cell_len

    from clearhead.views.terminal.parts import cut
    from clearhead.views.terminal.predictions import shown_token

    shown = ""
    for one in others:
        name = cut(shown_token(one.text) or f"#{one.token}", TOKEN)
        longer = f"{shown}{BETWEEN if shown else ''}{name} {one.probability:.3f}"
        if cell_len(longer) > room:
            break
        shown = longer
    return shown
