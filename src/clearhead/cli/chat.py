"""``clearhead chat``: a conversation with a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.generate import not_utf8, show_stream
from clearhead.cli.loading import load_model
from clearhead.cli.preparing import prepare_engine
from clearhead.cli.sampling_options import sampling_options
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.generation.event import Event
    from clearhead.generation.session import Session
    from clearhead.text.chat import ChatTemplate

COMMANDS = "/reset forgets everything, /save FILE writes the conversation as JSON, /exit leaves"


@click.command("chat")
@sampling_options
@click.option("--max-tokens", "-n", type=int, default=512, show_default=True,
              help="How many tokens an answer has at most.")  # fmt: skip
@click.option("--system", help="What the model is told first, before the conversation.")
def command(model: str, engine: bool | None, system: str | None, **options: Any) -> None:
    """Talk with a model. Piped, every line is one message.

    /reset forgets everything, /save FILE writes the conversation as JSON, /exit leaves; Ctrl-C ends
    an answer.
    """
    loaded = load_model(model)
    from clearhead.generation.session import Session
    from clearhead.text.chat import ChatTemplate

    if loaded.tokenizer is None:
        raise InputError(f"{model} has no tokenizer, and so no words to chat in.")
    session = Session(loaded, engine=engine)
    prepare_engine(loaded, engine)
    talk = Conversation(session, ChatTemplate.of(loaded.tokenizer), options, system)
    typed = sys.stdin.isatty()
    if typed:
        with suppress(ImportError):  # not everywhere; it gives input() arrow keys and a history
            import readline  # noqa: F401
        click.secho(COMMANDS, dim=True, err=True)
    while (line := _line(typed)) is not None:
        if line.strip() == "/exit":
            return
        if line.strip():
            talk.hear(line, patient=typed)


def _line(typed: bool) -> str | None:
    """The next message; None at the end."""
    try:
        return input("> " if typed else "")
    except EOFError:
        return None
    except UnicodeDecodeError as error:
        raise not_utf8("standard input", error) from None


@dataclass
class Conversation:
    """Messages, and the session that remembers them in its cache."""

    session: Session
    template: ChatTemplate
    options: dict[str, Any]
    system: str | None = None
    messages: list[dict[str, str]] = field(default_factory=list)
    finish: str | None = None  # how the last answer ended

    def __post_init__(self) -> None:
        self.reset()

    def hear(self, line: str, *, patient: bool) -> None:
        """A message to answer, or a command; ``patient``: Ctrl-C and errors end only the answer."""
        word, _, rest = line.strip().partition(" ")
        if word == "/reset":
            self.reset()
        elif word == "/save":
            self.save(rest.strip())
        elif word.startswith("/"):
            click.echo(f"{word} is no command: {COMMANDS}.", err=True)
        else:
            self._answer(line, patient)

    def reset(self) -> None:
        """Forget everything but what the model is told first."""
        self.messages = [{"role": "system", "content": self.system}] if self.system else []

    def save(self, name: str) -> None:
        """Write the messages as JSON, whole or not at all."""
        from clearhead.checkpoints.aside import written_aside

        if not name:
            click.echo("/save wants the name of a file: /save talk.json", err=True)
            return
        try:
            with written_aside(Path(name)) as aside:
                text = json.dumps(self.messages, ensure_ascii=False, indent=2)
                aside.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            click.echo(f"{name} cannot be written: {error.strerror}.", err=True)
        else:
            click.echo(f"{len(self.messages)} messages are in {name}", err=True)

    def _answer(self, line: str, patient: bool) -> None:
        self.messages.append({"role": "user", "content": line})
        said: list[str] = []
        try:
            show_stream(self._events(said))
        except KeyboardInterrupt:
            if not patient:
                raise
        except InputError as error:
            self.messages.pop()
            if not patient:
                raise
            click.echo(f"{error.message} /reset starts anew.", err=True)
            return
        self.messages.append({"role": "assistant", "content": "".join(said)})
        self._explain_end()

    def _events(self, said: list[str]) -> Generator[Event, None, None]:
        """The answer's events; ``said`` keeps their text, whatever ends them."""
        from clearhead.generation.generate import generate

        tokenizer = self.session.loaded.tokenizer
        assert tokenizer is not None
        ids = tokenizer.encode(self.template.render(self.messages), special=False)
        self.finish = None
        for event in generate(self.session, ids, **self.options):
            said.append(event.text)
            self.finish = event.finish
            yield event

    def _explain_end(self) -> None:
        if self.finish == "max-tokens":
            click.echo("(cut here: --max-tokens allows more)", err=True)
        elif self.finish == "context":
            click.echo("(the context is full: /reset starts anew)", err=True)
