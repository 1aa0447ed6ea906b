"""JSON files that describe a model (config.json and its neighbours), from unknown hands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clearhead.checkpoints.strict_json import parse_json
from clearhead.errors import CheckpointError, ClearheadError


def read_description(path: Path, kind: type[Any] = dict) -> Any:
    """What the file says, a JSON object or, with ``kind=list``, an array."""
    if not path.exists():
        raise CheckpointError(
            f"{path.parent} holds no {path.name}, which describes the model.",
            hint="a model folder has config.json, model.safetensors and tokenizer.json.",
        )
    try:
        parsed = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from None
    if not isinstance(parsed, kind):
        raise CheckpointError(f"{path} must hold a JSON {kind.__name__}.")
    return parsed


@contextmanager
def nonsense_refused(path: Path) -> Iterator[None]:
    """A description may hold anything, and arithmetic with anything fails in any way."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        said = error.message if isinstance(error, ClearheadError) else repr(error)
        raise CheckpointError(f"{path} does not describe a model: {said}") from error
