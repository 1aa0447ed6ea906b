"""Checks of the command line's arguments, before anything is loaded or computed."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import click

from clearhead.errors import InputError, StoreError

ENDINGS = {"html": (".html", ".htm"), "svg": (".svg",), "png": (".png",), "json": (".json",),
           "csv": (".csv",)}  # fmt: skip
CUTOFF = 0.7  # of the likeness of two names
LOOSE = 0.6  # where nothing else can be meant: wyh for why


def checked_output(
    _context: click.Context, parameter: click.Parameter, path: str | None
) -> str | None:
    """The path of a file to be written: refused where nothing could be written later."""
    if path is None or path == "-":
        return path
    name, place = str(parameter.name), Path(path)
    endings = ENDINGS[name]
    if place.suffix and place.suffix.lower() not in endings:
        meant = next((one for one, known in ENDINGS.items() if place.suffix.lower() in known), None)
        other = f"--{meant} {path}" if meant else f"--{name} {place.with_suffix(endings[0])}"
        raise InputError(
            f"--{name} writes {name.upper()}, and {path} ends in {place.suffix}.", hint=other
        )
    if place.is_dir():
        raise InputError(f"--{name} {path} is a folder; a file was wanted.")
    folder = place.parent
    if not folder.is_dir():
        raise InputError(
            f"--{name} {path}: there is no folder {folder}.", hint=f"mkdir -p {folder}"
        )
    if not os.access(place if place.exists() else folder, os.W_OK):
        raise InputError(f"--{name} {path} cannot be written: permission denied.")
    return path


def checked_model(
    _context: click.Context, _parameter: click.Parameter, name: str | None
) -> str | None:
    """The name of a model: refused if it can be none, with the name that was probably meant."""
    if name is None or exists(name):
        return name
    from clearhead.checkpoints.store.hub import is_hub_id
    from clearhead.checkpoints.store.model_store import ModelStore

    known = list(ModelStore().catalogue)
    if name in known or is_hub_id(name):
        return name
    raise StoreError(
        f"there is no model or path {name!r}.{did_you_mean(name, known, LOOSE)}",
        hint=f"known by name: {', '.join(known)}; or give a folder, a .gguf or .safetensors file, "
        'or a hub id such as "org/name".',
    )


def did_you_mean(given: str, known: list[str], cutoff: float = CUTOFF) -> str:
    """A question with the name that is most like the given one; "" if none is."""
    found = get_close_matches(given, known, n=1, cutoff=cutoff)
    return f" Did you mean {found[0]}?" if found else ""


def exists(path: str) -> bool:
    """True if there is such a file or folder."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or no path at all
        return False
