"""What ``train`` is given, apart from settings: the kind of each argument, before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearhead.arguments import flag, one_of, path, real_number, several, shown, text, whole_number
from clearhead.errors import ConfigError, InputError
from clearhead.tensors import device_of
from clearhead.training.sizes import SIZES

MOST_SEED = 2**62
MOST_RANK = 2**16  # of adapters
MOST_ENTRIES = 2**24  # of a vocabulary


def check_train(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of a wrong kind, by name; ``arguments`` are those of ``train``."""
    for name in ("pairs", "resume", "shard", "chats"):
        flag(name, arguments[name])
    path("out", arguments["out"])
    if arguments["size"] is not None:
        one_of("size", arguments["size"], list(SIZES), error=ConfigError)
    if arguments.get("chats") and arguments["pairs"]:
        raise InputError("chats and pairs are different things to learn from: give one of them.")
    _check_field(arguments.get("field"), arguments)
    for name in ("tokenizer", "start_from"):
        if arguments[name] is not None:
            path(name, arguments[name])
    for name in ("texts", "validation"):
        _check_texts(name, arguments[name])
    for name in ("model", "settings"):
        _check_fields(name, arguments[name])
    _check_numbers(arguments)
    stop = arguments.get("stop", callable)
    if not callable(stop):
        raise InputError(f"stop must be a function; got {shown(stop)}.")
    device = arguments["device"]
    if not isinstance(device, str) or device != "auto":
        device_of("device", device)


def _check_field(field: object, arguments: Mapping[str, Any]) -> None:
    if field is None:
        return
    if not text("field", field):
        raise InputError("field must be the name of a field; got an empty one.")
    for what in ("pairs", "chats"):
        if arguments.get(what):
            raise InputError(f"field is for texts in JSON Lines; {what} have none.")


def _check_numbers(arguments: Mapping[str, Any]) -> None:
    if arguments["vocabulary"] is not None:
        whole_number("vocabulary", arguments["vocabulary"], least=1, most=MOST_ENTRIES)
    if arguments["lora"] is not None:
        whole_number("lora", arguments["lora"], least=1, most=MOST_RANK, error=ConfigError)
    _check_words("freeze", arguments["freeze"])
    if arguments["steps"] is not None:
        whole_number("steps", arguments["steps"], least=1, error=ConfigError)
    if arguments["minutes"] is not None:
        real_number("minutes", arguments["minutes"], above=0, error=ConfigError)
    if arguments["seed"] is not None:
        whole_number("seed", arguments["seed"], least=0, most=MOST_SEED, error=ConfigError)


def _check_words(name: str, given: object) -> None:
    words = [given] if isinstance(given, str) else several(name, given, "words or patterns")
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{name} must be words or patterns; got {shown(given)}.")


def _check_texts(name: str, given: object) -> None:
    """Paths must be paths, and lists must end; what they mean is for ``source_of``."""
    several_of_them = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    for one in several(name, given, "texts, pairs or paths") if several_of_them else [given]:
        if isinstance(one, Path):
            path(name, one)


def _check_fields(name: str, given: object) -> None:
    if given is not None and not (
        isinstance(given, Mapping) and all(isinstance(key, str) for key in given)
    ):
        raise ConfigError(f"{name} must be a dict of fields by name; got {shown(given)}.")
