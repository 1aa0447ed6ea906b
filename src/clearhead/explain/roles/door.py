"""Checks of the arguments of ``roles``: their kinds, before anything is read or counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clearhead.arguments import path, several, shown, whole_number
from clearhead.errors import InputError
from clearhead.explain.roles.judging import Rules
from clearhead.trace.passage import check_tokenizer


def check_roles(arguments: Mapping[str, object]) -> None:
    """Refuse arguments of a wrong kind, by name; ``arguments`` are those of ``find_roles``."""
    _check_corpus(arguments["corpus"])
    properties = arguments["properties"]
    if properties is not None and not isinstance(properties, str):
        wanted = "names, Property objects or functions"
        if not several("properties", properties, wanted):
            raise InputError(f"properties must be a list of {wanted}; got an empty one.")
    check_tokenizer(arguments["tokenizer"])
    for name in ("forward", "progress"):
        if arguments[name] is not None and not callable(arguments[name]):
            raise InputError(f"{name} must be a function; got {shown(arguments[name])}.")
    spacy = arguments["spacy"]
    if spacy is not None and not isinstance(spacy, str) and not callable(spacy):
        raise InputError(f"spacy must be a pipeline of spaCy or its name; got {shown(spacy)}.")
    if arguments["interventions"] is not None:
        whole_number("interventions", arguments["interventions"], least=0)
    if not isinstance(arguments["rules"], Rules | None):
        raise InputError(f"rules must be Rules(…); got {shown(arguments['rules'])}.")
    whole_number("batch_tokens", arguments["batch_tokens"], least=1)
    if arguments["keep"] is not None:
        path("keep", arguments["keep"])
    _check_share(arguments["share"])


def _check_corpus(corpus: object) -> None:
    try:
        iter(() if isinstance(corpus, Path | None) else corpus)  # type: ignore[call-overload]
    except (TypeError, RuntimeError):  # an array without axes, too
        raise InputError(
            f"corpus must be a path, a text, or texts or sentences; got {shown(corpus)}."
        ) from None


def _check_share(share: object) -> None:
    if not isinstance(share, tuple) or len(share) != 2:
        raise InputError(
            f"share must be (this process, number of processes), (0, 1) for one; got "
            f"{shown(share)}."
        )
    count = whole_number("share (the number of processes)", share[1], least=1)
    whole_number("share (the number of this process)", share[0], least=0, most=count - 1)
