"""``merge``: base and adapter as one model, which transformers opens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from clearhead.checkpoints.adapters.merge import merge
from clearhead.errors import InputError
from tests.checkpoints.adapters.conftest import Adapted
from tests.shared.tiny_models import token_ids


def test_transformers_opens_the_merged_model(adapted: Adapted, tmp_path: Path) -> None:
    _, changed, folder = adapted("qwen3")
    merged = merge(folder, tmp_path / "merged")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(merged)
    with torch.no_grad():
        ids = token_ids(2, 13)
        torch.testing.assert_close(theirs(ids).logits, changed(ids), atol=1e-3, rtol=1e-3)


def test_a_model_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dates holds no adapter"):
        merge("dates", tmp_path / "merged")
