"""Prompts: a text or token ids, as a user gives them, become checked token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from clearhead.arguments import shown, whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.text.tokenizer import Tokenizer

Prompt: TypeAlias = str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]


def prompt_rows(loaded: Loaded, prompt: Prompt) -> list[list[int]]:
    """Return the ids of each prompt: one text or list of ids, or several of either."""
    if isinstance(prompt, str) or not _is_batch(prompt):
        return [prompt_ids(loaded, prompt)]  # type: ignore[arg-type]
    return [prompt_ids(loaded, one) for one in prompt]  # type: ignore[arg-type]


def prompt_ids(loaded: Loaded, prompt: str | Sequence[int]) -> list[int]:
    """Return the ids of one prompt, with the special tokens that the model expects around it."""
    if isinstance(prompt, str):
        return _encoded(loaded, prompt)
    if not isinstance(prompt, Sequence):
        raise InputError(
            "a prompt is a text, a list of token ids, or several of either; got "
            f"{type(prompt).__name__}."
        )
    return [_checked_id(loaded, id) for id in prompt] or _bos_ids(loaded)


def tokenizer_of(loaded: Loaded, what: str) -> Tokenizer:
    """Return the model's tokenizer, or raise an error that says ``what`` needs it."""
    if loaded.tokenizer is None:
        raise InputError(
            f"{what} needs a tokenizer, and {loaded.name} came without one.",
            hint="give the prompt as a list of token ids, or put tokenizer.json into the folder.",
        )
    return loaded.tokenizer


def decoder_start_ids(loaded: Loaded) -> list[int]:
    """Return the tokens that the decoder of an encoder-decoder model starts from."""
    config, given = loaded.config, loaded.generation
    known = (given.start, config.start, given.bos, config.bos)
    start = next((token for token in known if token is not None), None)
    if start is None:
        raise InputError(
            f"{loaded.name} does not define the token that its decoder starts with.",
            hint="config.json should have decoder_start_token_id.",
        )
    return [_checked_id(loaded, start)]


def bos_of(loaded: Loaded) -> int | None:
    """Return the token that begins a text; None if the model has none."""
    given = (loaded.generation.bos, loaded.config.bos)
    known = [token for token in given if token is not None and 0 <= token < loaded.config.vocab]
    if known:
        return known[0]
    return None if loaded.tokenizer is None else loaded.tokenizer.specials.bos


def end_tokens(loaded: Loaded) -> tuple[int, ...]:
    """Return the tokens that end a text: those of the file for generation, or the config's."""
    return loaded.generation.eos or loaded.config.eos


def _is_batch(prompt: object) -> bool:
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(one, str | Sequence) for one in prompt)
    )


def _encoded(loaded: Loaded, text: str) -> list[int]:
    ids = tokenizer_of(loaded, "a text prompt").encode(text)
    if loaded.config.kind == "encoder-decoder":
        if not text.strip():
            raise InputError("the source text is empty.", hint="give it some words.")
        return ids
    while ids and ids[-1] in end_tokens(loaded) and not _ends_with(loaded, text, ids[-1]):
        ids = ids[:-1]  # the tokenizer adds an end token to every text, but this one continues
    return ids or _bos_ids(loaded)


def _ends_with(loaded: Loaded, text: str, id: int) -> bool:
    """True if the text itself, without added special tokens, ends with this token."""
    own = tokenizer_of(loaded, "a text prompt").encode(text, special=False)
    return own[-1:] == [id]


def _bos_ids(loaded: Loaded) -> list[int]:
    bos = bos_of(loaded)
    if bos is None or loaded.config.kind == "encoder-decoder":
        raise InputError(
            "the prompt is empty, and this model has no token to begin a text with.",
            hint="give it at least one word, or one token id.",
        )
    return [bos]


def _checked_id(loaded: Loaded, id: object) -> int:
    most = loaded.config.vocab - 1
    try:
        return whole_number("id", id, least=0, most=most)
    except InputError:
        raise InputError(
            f"a token id of this model is a whole number from 0 to {most}; got {shown(id)}."
        ) from None
