"""Chat templates: from messages to the one text that a chat model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clearhead.errors import InputError
from clearhead.text.tokenizer import SPECIAL_NAMES, Tokenizer

if TYPE_CHECKING:
    from clearhead.text.chat.sandbox import Compiled

Message = Mapping[str, Any]
LONGEST_ERROR = 500  # characters


class ChatTemplate:
    """A model's own Jinja template, run in a sandbox.

    A template is a program that came with somebody's model. It sees the messages and the names it
    is given, nothing else, and has a budget (``budget.Budget``): endless loops and texts that
    explode end in an ``InputError``. The rendered text already holds the special tokens; encode it
    with ``special=False``.
    """

    def __init__(self, source: str, **names: Any) -> None:
        from clearhead.text.chat.sandbox import compile_template

        self.source = source
        self.names = names
        try:
            self._compiled: Compiled = compile_template(source)
        except Exception as error:  # of Jinja's parser or of Python's, on a stranger's text
            place = getattr(error, "lineno", None)
            line = f" (line {place})" if place else ""
            raise InputError(f"the chat template is broken{line}: {_cut(error)}") from None

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> ChatTemplate:
        """The template that came with a tokenizer, knowing its special tokens by name."""
        if tokenizer.chat_template is None:
            raise InputError(
                "this model has no chat template: it was probably never trained to chat.",
                hint="use plain generation, or a model whose name ends in Instruct or Chat.",
            )
        ids = {name: getattr(tokenizer.specials, name) for name in SPECIAL_NAMES}
        names = {f"{n}_token": tokenizer.piece(id) for n, id in ids.items() if id is not None}
        return cls(tokenizer.chat_template, **names)

    def render(
        self, messages: Sequence[Message], *, add_generation_prompt: bool = True, **names: Any
    ) -> str:
        """The text of ``messages``; ``names`` are further variables of the template."""
        from jinja2 import TemplateError, UndefinedError

        from clearhead.text.chat.sandbox import render_template

        variables = {"tools": None, "documents": None, **self.names, **names}
        variables["messages"] = _checked(messages)
        variables["add_generation_prompt"] = add_generation_prompt
        try:
            return render_template(self._compiled, variables)
        except UndefinedError as error:
            raise InputError(
                f"the chat template asks for something that is not there: {_cut(error)}",
                hint="does every message have what this model wants, such as role and content?",
            ) from None
        except TemplateError as error:
            raise InputError(f"the chat template refuses these messages: {_cut(error)}") from None
        except RecursionError:
            raise InputError("the chat template calls itself without end.") from None
        except Exception as error:  # whatever a stranger's program can run into
            raise InputError(f"the chat template fails on these messages: {_cut(error)}") from None


def _cut(error: Exception) -> str:
    """The beginning of an error's text, which may be as long as the template likes."""
    text = str(error) or type(error).__name__
    return text if len(text) <= LONGEST_ERROR else text[:LONGEST_ERROR] + " …"


def _checked(messages: object) -> list[dict[str, Any]]:
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InputError(
            f"messages is a list of {{'role': …, 'content': …}}; {type(messages).__name__} came."
        )
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f"message {place} should be {{'role': …, 'content': …}}, and is {message!r}."
            )
    return [dict(message) for message in messages]
