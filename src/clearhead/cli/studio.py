"""``clearhead studio``: the live page: type, and see what a model attends to, says and why."""

from __future__ import annotations

import webbrowser

import click

from clearhead.cli import interrupts
from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import DEFAULT_MODEL, SectionedCommand, examples
from clearhead.cli.printing import say


@click.command(
    "studio",
    cls=SectionedCommand,
    short_help="Open a live page: type, look, write, ask why.",
    epilog=examples(
        "clearhead studio",
        "clearhead studio minilm my-model/ other.gguf",
        "clearhead studio run.trace --port 9000 --no-open",
    ),
)
@click.argument("models", metavar="[MODEL|TRACE]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), help="Port.  [default: 8765, or a free one]")
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to serve. Another one lets other machines in.")  # fmt: skip
@click.option("--open/--no-open", "open_page", default=True, help="Open the page in a browser.")
def command(models: tuple[str, ...], port: int | None, host: str, open_page: bool) -> None:
    """Serve a page on this machine: type a text, and see what the model attends to.

    MODEL is a name, a folder, a .gguf or .safetensors file; TRACE a saved trace. The page offers
    these and the models of the catalogue, and nothing else of this machine. Ctrl-C ends it.
    """
    given = [checked_model(click.get_current_context(), _ARGUMENT, name) for name in models]
    from clearhead.studio.studio import Studio

    with Studio([*given] or [DEFAULT_MODEL], host, port, open_page=False, framed=False) as running:
        try:
            interrupts.be_patient()  # what runs is told to stop, and memory is freed
            _tell(running.url, host)
            if open_page:
                webbrowser.open(running.url)
            running.wait()
        except KeyboardInterrupt:
            interrupts.settled()
    say("The studio is closed.")


def _tell(url: str, host: str) -> None:
    say(f"clearhead studio is at {url}")
    if host not in ("127.0.0.1", "localhost", "::1"):
        say("Other machines can reach it; whoever knows this address can use it.", err=True)
    say("Ctrl-C ends it.")


_ARGUMENT = click.Argument(["models"])
