"""What a call uses: the caller's settings first, then those of the model's files, then ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from clearhead.arguments import flag
from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError

Value = TypeVar("Value")

MAX_TOKENS = 128  # of a text, where neither the caller nor a file says


def file_defaults(loaded: Loaded, wanted: bool) -> GenerationDefaults:
    """The defaults of the model's files; if they are not ``wanted``, its special tokens alone.

    Raises:
        InputError: a file asks for something that is not offered.
    """
    if not flag("file_settings", wanted):
        return loaded.generation.special_tokens
    if loaded.generation.refused:
        asked = ", ".join(f"{name}={value}" for name, value in loaded.generation.refused)
        raise InputError(
            f"{loaded.generation.source or loaded.name} asks for {asked}, which is not offered.",
            hint="file_settings=False (--no-file-settings) leaves the settings of the model's "
            "files aside; its end tokens stay.",
        )
    return loaded.generation


def first_given(*values: Value | None, otherwise: Value) -> Value:
    """The first value that is not None."""
    return next((value for value in values if value is not None), otherwise)


def given_or_file(
    given: Mapping[str, Any], defaults: GenerationDefaults, otherwise: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that somebody gives: the caller, the files, or ``otherwise``."""
    known = {
        name: first_given(value, getattr(defaults, name), otherwise=otherwise.get(name))
        for name, value in given.items()
    }
    return {name: value for name, value in known.items() if value is not None}


def token_limit(given: int | None, defaults: GenerationDefaults, prompt: int) -> int:
    """The largest number of tokens after a prompt of so many.

    Raises:
        InputError: a file limits prompt and text together, and the prompt alone exceeds that.
    """
    if given is not None or defaults.max_tokens is not None or defaults.max_length is None:
        return first_given(given, defaults.max_tokens, otherwise=MAX_TOKENS)
    if prompt >= defaults.max_length:
        raise InputError(
            f"the prompt has {prompt} tokens, and {defaults.source or 'the model'} says "
            f"max_length={defaults.max_length} for prompt and text together.",
            hint="give max_tokens=… (--max-tokens).",
        )
    return defaults.max_length - prompt
