"""What a page shows, as a file to take along: the same formats as ``.save`` of a look."""

from __future__ import annotations

from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.studio.looking import Pane, plain_head
from clearhead.studio.worker import Job
from clearhead.views.formats import FORMATS
from clearhead.views.why.shown import ShownWhy

KINDS = {
    "html": "text/html", "svg": "image/svg+xml", "png": "image/png", "csv": "text/csv",
    "json": "application/json",
}  # fmt: skip


def send_file(
    pane: Pane, job: Job, *, what: str, format: str, head: str | None, word: int | None
) -> None:
    """Send the look, the shown head, the shown word or the explanation as a file."""
    if format not in KINDS:
        raise InputError(f"a file is one of {', '.join(KINDS)}.")
    job.progress(0, 1, "writing the file")
    content = file_of(pane, what, format, head, word)
    job.tell("file", content, name=f"clearhead-{what}.{format}", type=KINDS[format])


def file_of(pane: Pane, what: str, format: str, head: str | None, word: int | None) -> bytes:
    """The bytes of a file."""
    if what == "why":
        if pane.why is None:
            raise InputError("nothing has been explained yet.")
        return ShownWhy.formats[format](pane.why)
    if pane.look is None:
        raise InputError("nothing is shown yet.")
    if what == "head":
        return FORMATS[format](pane.look.head(plain_head(head)))
    if what == "word":
        return FORMATS[format](pane.look.word(word, plain_head(head)))
    if what != "look":
        raise InputError("a file holds the look, a head, a word or a why.")
    return FORMATS[format](_shown(pane.look, head, word))


def _shown(look: Look, head: str | None, word: int | None) -> Look:
    """The same look, with what the page shows chosen."""
    return Look(
        look.seen, aids=look.aids, word=word, head=plain_head(head), loaded=look.loaded,
        written=look.written,
    )  # fmt: skip
