"""Chats to learn from: lists of messages, of which only the answers are to be predicted.

The model's own template turns a chat into one text. What the template writes between the prompt
for an answer and the end of its message is the answer: it is found by rendering the chat up to
there. So the mask is right for every template that writes a chat from its beginning to its end.
Where a template rewrites earlier messages later on (it drops old thoughts, say), each answer
becomes a text of its own, as the model will see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clearhead.errors import InputError
from clearhead.files.json_file import parse_json
from clearhead.text.chat.template import ChatTemplate
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.corpus import read_text
from clearhead.training.data.source import Chat, Source, source_of

ANSWERS = "assistant"
WANTED = 'each line is {"messages": [{"role": "user", "content": …}, …]}, or that list alone'


class Example(NamedTuple):
    """The ids of a chat, and which of them are to be predicted."""

    ids: list[int]
    learned: list[bool]


def read_chats(paths: Sequence[str | Path]) -> list[Chat]:
    """The chats in JSON Lines files.

    Raises:
        InputError: a line holds something else; it says which one.
    """
    chats: list[Chat] = []
    for path in paths:
        for number, line in enumerate(read_text(Path(path)).split("\n"), start=1):
            if not line.strip():
                continue
            try:
                chats.append(checked_chat(parse_json(line)))
            except (ValueError, InputError) as error:
                said = error.message if isinstance(error, InputError) else f"{error}."
                raise InputError(f"{path}, line {number}: {said}", hint=WANTED + ".") from None
    if not chats:
        raise InputError(f"{', '.join(map(str, paths))} holds no chats.", hint=WANTED + ".")
    return chats


def chat_source(given: object) -> Source:
    """Paths of files of JSON Lines, or chats themselves: lists of messages.

    Raises:
        InputError: it is something else.
    """
    items = list(given) if isinstance(given, list | tuple) else given
    if isinstance(items, list) and items and not isinstance(items[0], str | Path):
        return Source(content=[checked_chat(chat) for chat in items])
    if isinstance(items, list) and any(isinstance(item, str) for item in items):
        raise InputError("chats are lists of messages, or paths; got strings.", hint=WANTED + ".")
    return source_of(given, pairs=False)


def checked_chat(given: object) -> Chat:
    """The messages of a chat; an ``InputError`` says what is wrong with them."""
    messages = given.get("messages") if isinstance(given, Mapping) else given
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError("a chat is a list of messages.", hint=WANTED + ".")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f"message {place} of a chat is {{'role': …, 'content': …}}; got "
                f"{repr(message)[:60]}."
            )
    if not any(message["role"] == ANSWERS for message in messages):
        raise InputError(
            f"a chat has no answer to learn from: no message is of the role {ANSWERS!r}."
        )
    return [dict(message) for message in messages]


def examples_of(
    chat: Chat, template: ChatTemplate, tokenizer: Tokenizer, ends: Iterable[int]
) -> list[Example]:
    """What is learned from a chat; ``ends`` are the ids that end an answer.

    Raises:
        InputError: the template does not write an answer behind the prompt for it.
    """
    whole = template.render(chat, add_generation_prompt=False)
    answers = [_answer(chat, place, template) for place, message in enumerate(chat)
               if message["role"] == ANSWERS]  # fmt: skip
    ends = frozenset(ends)
    if all(whole.startswith(text) for text, _ in answers):
        spans = [(start, len(text)) for text, start in answers]
        return [_example(whole, spans, tokenizer, ends)]
    return [_example(text, [(start, len(text))], tokenizer, ends) for text, start in answers]


def _answer(chat: Chat, place: int, template: ChatTemplate) -> tuple[str, int]:
    """The text of a chat up to an answer, and where in it the answer begins."""
    prompt = template.render(chat[:place], add_generation_prompt=True) if place else ""
    text = template.render(chat[: place + 1], add_generation_prompt=False)
    if not text.startswith(prompt):
        prompt = template.render(chat[:place], add_generation_prompt=False)
    if not text.startswith(prompt) or len(text) == len(prompt):
        raise InputError(
            f"the chat template does not write message {place} behind the prompt for it, so which "
            "tokens are the answer cannot be told."
        )
    return text, len(prompt)


def _example(
    text: str, spans: Sequence[tuple[int, int]], tokenizer: Tokenizer, ends: frozenset[int]
) -> Example:
    """The ids of a text; those that begin inside a span are learned, up to what ends the answer."""
    tokens = tokenizer.tokens(text, special=False)
    learned = [False] * len(tokens)
    for start, stop in spans:
        inside = [i for i, token in enumerate(tokens) if start <= token.start < stop]
        last = max((i for i in inside if tokens[i].id in ends), default=len(tokens))
        for i in inside:
            learned[i] = i <= last
    return Example([token.id for token in tokens], learned)
