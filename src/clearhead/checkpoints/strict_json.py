"""JSON from files of unknown origin: a name given twice is an error, and so is deep nesting."""

from __future__ import annotations

import json
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """Parse ``data``; raise only ``ValueError`` whatever it holds."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"it lists {name!r} twice")
        result[name] = value
    return result
