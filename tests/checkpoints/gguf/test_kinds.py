from __future__ import annotations

import re
from pathlib import Path

import gguf

from clearhead.checkpoints.gguf.kinds import KINDS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "models.md"


def test_the_table_is_the_packages() -> None:
    for number, kind in KINDS.items():
        oracle = gguf.GGMLQuantizationType(number)
        assert kind.name == oracle.name
        assert (kind.block_length, kind.block_bytes) == gguf.GGML_QUANT_SIZES[oracle]


def test_the_page_of_models_lists_every_kind() -> None:
    listed = re.search(r"of these kinds:\s+(.*?)\.\n", PAGE.read_text(), re.DOTALL)
    assert listed is not None
    assert listed[1].split(", ") == [kind.name for kind in KINDS.values()]
