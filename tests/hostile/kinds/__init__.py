"""Kinds of content, each with every single change (``step``) and random ones (``changed``)."""

from __future__ import annotations

from tests.hostile.kinds.gguf import GGUF
from tests.hostile.kinds.json_tree import JSON, JSON_LINES
from tests.hostile.kinds.kind import Kind
from tests.hostile.kinds.lines import LINES
from tests.hostile.kinds.raw import RAW
from tests.hostile.kinds.safetensors import SAFETENSORS
from tests.hostile.kinds.template import TEMPLATE

BY_ENDING: dict[str, Kind] = {
    ".json": JSON,
    ".jsonl": JSON_LINES,
    ".safetensors": SAFETENSORS,
    ".trace": SAFETENSORS,
    ".counts": SAFETENSORS,
    ".gguf": GGUF,
    ".conllu": LINES,
    ".tsv": LINES,
    ".txt": LINES,
    ".jinja": TEMPLATE,
}


def kind_of(path: str) -> Kind:
    """The kind of a file, by the ending of its name."""
    return BY_ENDING.get(path[path.rfind(".") :], RAW)
