"""From what a user gives as a prompt to the ids that the model starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.text.tokenizer import Tokenizer

Prompt: TypeAlias = str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]


def prompt_rows(loaded: Loaded, prompt: Prompt) -> list[list[int]]:
    """The ids of each prompt: one text or list of ids, or several of either."""
    if isinstance(prompt, str) or not _several(prompt):
        return [prompt_ids(loaded, prompt)]  # type: ignore[arg-type]
    return [prompt_ids(loaded, one) for one in prompt]  # type: ignore[arg-type]


def prompt_ids(loaded: Loaded, prompt: str | Sequence[int]) -> list[int]:
    """The ids of one prompt, with whatever the model wants at its beginning or end."""
    if isinstance(prompt, str):
        return _encoded(loaded, prompt)
    if not isinstance(prompt, Sequence):
        raise InputError(
            "a prompt is a text, a list of token ids, or several of either; got "
            f"{type(prompt).__name__}."
        )
    return [_checked(loaded, id) for id in prompt] or _beginning(loaded)


def tokenizer_of(loaded: Loaded, what: str) -> Tokenizer:
    """The model's tokenizer, or an error that says for what it is missing."""
    if loaded.tokenizer is None:
        raise InputError(
            f"{what} needs a tokenizer, and {loaded.name} came without one.",
            hint="give the prompt as a list of token ids, or put tokenizer.json into the folder.",
        )
    return loaded.tokenizer


def start_ids(loaded: Loaded) -> list[int]:
    """What the output of an encoder-decoder model starts from."""
    start = loaded.config.start if loaded.config.start is not None else loaded.config.bos
    if start is None:
        raise InputError(
            f"{loaded.name} does not say which token its output starts with.",
            hint="config.json should have decoder_start_token_id.",
        )
    return [start]


def check_fits(ids: list[int], context: int | None) -> None:
    """Refuse what is longer than the model's context."""
    if context is not None and len(ids) > context:
        raise InputError(
            f"the prompt has {len(ids)} tokens, and this model's context holds {context}.",
            hint="shorten it, or let its beginning be forgotten: slide=True (--slide).",
        )


def slid(ids: list[int], context: int, bos: int | None) -> list[int]:
    """The later half of what fits, so that there is room to go on; a BOS token stays in front."""
    kept = max(1, context // 2)
    if len(ids) <= kept:
        return list(ids)
    return [bos, *ids[len(ids) - kept + 1 :]] if bos is not None and ids[0] == bos else ids[-kept:]


def bos_of(loaded: Loaded) -> int | None:
    """The token that begins a text, where the model has one."""
    if loaded.config.bos is None and loaded.tokenizer is not None:
        return loaded.tokenizer.specials.bos
    return loaded.config.bos


def _several(prompt: object) -> bool:
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(one, str | Sequence) for one in prompt)
    )


def _encoded(loaded: Loaded, text: str) -> list[int]:
    ids = tokenizer_of(loaded, "a prompt in words").encode(text)
    if loaded.config.kind == "encoder-decoder":
        if not text.strip():
            raise InputError("the text to read is empty.", hint="give it some words.")
        return ids
    while ids and ids[-1] in loaded.config.eos and not _ends_so(loaded, text, ids[-1]):
        ids = ids[:-1]  # the tokenizer closes every text, but this one is to go on
    return ids or _beginning(loaded)


def _ends_so(loaded: Loaded, text: str, id: int) -> bool:
    own = tokenizer_of(loaded, "a prompt in words").encode(text, special=False)
    return own[-1:] == [id]


def _beginning(loaded: Loaded) -> list[int]:
    bos = bos_of(loaded)
    if bos is None or loaded.config.kind == "encoder-decoder":
        raise InputError(
            "the prompt is empty, and this model has no token to begin a text with.",
            hint="give it at least one word, or one token id.",
        )
    return [bos]


def _checked(loaded: Loaded, id: object) -> int:
    whole = isinstance(id, SupportsIndex) and not isinstance(id, bool)
    if not whole or not 0 <= id.__index__() < loaded.config.vocab:  # type: ignore[attr-defined]
        raise InputError(
            f"a token id of this model is a whole number from 0 to {loaded.config.vocab - 1}; "
            f"got {id!r}."
        )
    return int(id.__index__())  # type: ignore[attr-defined]
