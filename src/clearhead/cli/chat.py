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

from clearhead.cli import interrupts
from clearhead.cli.generate import not_utf8, show_stream
from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import load_model
from clearhead.cli.output.preparing import EIGHT_BITS, prepare_engine
from clearhead.cli.printing import say
from clearhead.cli.sampling_options import sampling_options
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.generation.event import Event
    from clearhead.generation.session import Session
    from clearhead.text.chat.template import ChatTemplate

MAX_TOKENS = 512  # of an answer
COMMANDS = (
    "/reset starts a new conversation, /save FILE writes the conversation as JSON, /exit leaves"
)


@click.command(
    "chat",
    cls=SectionedCommand,
    short_help="Talk with a model.",
    epilog=examples(
        "clearhead chat",
        'clearhead chat --system "You are a poet." --temperature 1',
        "clearhead chat --model ./trained < questions.txt",
    ),
)
@sampling_options
@click.option("--max-tokens", "-n", type=int,
              help="Maximum number of tokens of an answer.  [default: the model's files, or "
              "512]")  # fmt: skip
@click.option("--system", help="System prompt: instructions that come before the conversation.")
@EIGHT_BITS
def command(
    model: str, engine: bool | None, system: str | None, eight_bits: bool, **options: Any
) -> None:
    """Talk with a model. From a pipe, every line is one message.

    Options that are not given come from the model's files, if those have them. In a chat, /reset
    starts a new conversation, /save FILE writes the conversation as JSON, and /exit leaves. Ctrl-C
    ends an answer. On a terminal, characters that would command it are shown as signs; a pipe gets
    the answers as they are.
    """
    loaded = load_model(model)
    limited = options["file_settings"] and loaded.generation.limits_length
    if options["max_tokens"] is None and not limited:
        options["max_tokens"] = MAX_TOKENS
    from clearhead.generation.session import Session
    from clearhead.text.chat.template import ChatTemplate

    if loaded.tokenizer is None:
        raise InputError(f"{model} has no tokenizer, so it cannot read text.")
    session = Session(loaded, engine=engine)
    prepare_engine(loaded, engine, eight_bits=eight_bits)
    conversation = Conversation(session, ChatTemplate.of(loaded.tokenizer), options, system)
    typed = sys.stdin.isatty()
    if typed:
        with suppress(ImportError):  # not everywhere; it gives input() arrow keys and a history
            import readline  # noqa: F401
        say(COMMANDS, dim=True, err=True)
    while (line := _line(typed)) is not None:
        if line.strip() == "/exit":
            return
        if line.strip():
            conversation.handle(line, interactive=typed)


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

    def handle(self, line: str, *, interactive: bool) -> None:
        """Answer a message or obey a command; ``interactive``: errors end only the answer."""
        word, _, rest = line.strip().partition(" ")
        if word == "/reset":
            self.reset()
        elif word == "/save":
            self.save(rest.strip())
        elif word.startswith("/"):
            say(f"{word} is not a command: {COMMANDS}.", err=True)
        else:
            self._answer(line, interactive)

    def reset(self) -> None:
        """Forget everything but the system prompt."""
        self.messages = [{"role": "system", "content": self.system}] if self.system else []

    def save(self, name: str) -> None:
        """Write the messages as JSON, whole or not at all."""
        from clearhead.files.atomic_write import atomic_write

        if not name:
            say("/save wants the name of a file: /save talk.json", err=True)
            return
        try:
            with atomic_write(Path(name)) as temporary:
                text = json.dumps(self.messages, ensure_ascii=False, indent=2)
                temporary.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            say(f"{name} cannot be written: {error.strerror}.", err=True)
        else:
            say(f"{len(self.messages)} messages are in {name}", err=True)

    def _answer(self, line: str, interactive: bool) -> None:
        self.messages.append({"role": "user", "content": line})
        pieces: list[str] = []
        try:
            show_stream(self._events(pieces))
        except KeyboardInterrupt:
            if not interactive:
                raise
            interrupts.settled()
        except InputError as error:
            self.messages.pop()
            if not interactive:
                raise
            say(f"{error.message} /reset starts a new conversation.", err=True)
            return
        self.messages.append({"role": "assistant", "content": "".join(pieces)})
        self._explain_end()

    def _events(self, pieces: list[str]) -> Generator[Event, None, None]:
        """The answer's events; ``pieces`` collects their text, whatever ends them."""
        from clearhead.generation.generate import generate

        tokenizer = self.session.loaded.tokenizer
        assert tokenizer is not None
        ids = tokenizer.encode(self.template.render(self.messages), special=False)
        self.finish = None
        for event in generate(self.session, ids, **self.options):
            pieces.append(event.text)
            self.finish = event.finish
            yield event

    def _explain_end(self) -> None:
        if self.finish == "max-tokens":
            say("(the answer reached --max-tokens)", err=True)
        elif self.finish == "context":
            say("(the context is full: /reset starts a new conversation)", err=True)
