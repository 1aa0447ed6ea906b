"""``clearhead learn``: writes the course, one page with figures whose numbers can be changed."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import measuring
from clearhead.cli.looking_options import program
from clearhead.cli.printing import say, write
from clearhead.errors import InputError

PAGE = "learn.html"


@click.command(
    "learn",
    cls=SectionedCommand,
    short_help="Write the course: from one query to a Transformer, live.",
    epilog=examples(
        "clearhead learn --open",
        "clearhead learn --html course.html",
        "clearhead learn --markdown docs/learn",
    ),
)
@click.option("--html", metavar="OUT", help=f"Write the page to this file.  [default: {PAGE}]")
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option("--markdown", metavar="FOLDER", help="Write the text as Markdown pages instead.")
def command(html: str | None, open_page: bool, markdown: str | None) -> None:
    """Write a course on attention: sixteen chapters in one page, which needs no network.

    Each chapter has a question, a live figure whose numbers can be changed, the same in a few lines
    of Python, and an exercise. It ends in a real model.
    """
    if markdown is not None:
        if html is not None or open_page:
            raise InputError("--markdown writes no page; got --html or --open beside it.")
        _write_markdown(Path(markdown))
        return
    path = Path(PAGE if html is None else html)
    _check(path)
    from clearhead.views.course.html import course_page

    with measuring("writing the course …") as progress:
        page = course_page(progress=progress)
    if html == "-":
        write(page, nl=False)
        return
    _write(path, page)
    say(f"{path} is written ({path.stat().st_size / 1e6:.1f} MB).")
    if open_page:
        webbrowser.open(path.resolve().as_uri())
    else:
        say(f"Open it in a browser, or: {program()} learn --open")


def _check(path: Path) -> None:
    """Refuse what cannot become a page, before anything is computed."""
    if str(path) == "-":
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"--html: a page ends in .html; got {path}.", hint=f"--html {path.stem or 'learn'}.html"
        )
    if path.is_dir():
        raise InputError(f"--html: {path} is a folder; a file is wanted.")
    if not path.resolve().parent.is_dir():
        raise InputError(f"--html: there is no folder {path.parent}.", hint="make it first.")


def _write(path: Path, text: str) -> None:
    from clearhead.files.atomic_write import atomic_write

    try:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None


def _write_markdown(folder: Path) -> None:
    from clearhead.views.course.markdown import course_markdown

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}.") from None
    pages = course_markdown()
    for name, text in pages.items():
        _write(folder / name, text)
    say(f"{len(pages)} pages are written to {folder}.")
