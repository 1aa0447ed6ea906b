"""The models that come by name, against transformers loading the same files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers

import clearhead as ch
from tests.shared.tiny_models import padded, standing

pytestmark = [pytest.mark.download, pytest.mark.usefixtures("quiet_transformers")]
Files = Callable[[str], Path]
TEXTS = [
    "The kids were scared of the lions, so they left right away.",
    "Students opened their books.",
    "def attention(query, key, value): return softmax(query @ key.T) @ value",
]


def test_smollm2(default_model_files: Files) -> None:
    folder = default_model_files("smollm2")
    (file,) = folder.glob("*.gguf")
    loaded = ch.load("smollm2")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    assert loaded.tokenizer is not None
    ids = torch.tensor([loaded.tokenizer.encode(TEXTS[0])])
    wanted = theirs(ids).logits
    assert (loaded.model(ids) - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert torch.equal(loaded.model(ids).argmax(-1), wanted.argmax(-1))
    for side in ("left", "right"):
        batch, real = padded((11, 5), side)
        wanted = theirs(batch, attention_mask=real.long(), position_ids=standing(real)).logits
        got = loaded.model(batch, real=real)
        assert (got - wanted)[real].abs().max() < 1e-4 * wanted.abs().max()


def test_smollm2_saved_for_transformers(default_model_files: Files, tmp_path: Path) -> None:
    default_model_files("smollm2")
    loaded = ch.load("smollm2")
    ids = torch.arange(2000, 2013)[None]
    wanted = loaded.model(ids)
    folder = ch.save(loaded.model, tmp_path / "smollm2", loaded.tokenizer)
    del loaded
    back = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    assert (back(ids).logits - wanted).abs().max() < 1e-4 * wanted.abs().max()


def test_minilm(default_model_files: Files) -> None:
    folder = default_model_files("minilm")
    loaded = ch.load("minilm")
    assert loaded.config.head == "embedding"
    assert loaded.tokenizer is not None
    theirs = transformers.AutoModel.from_pretrained(
        loaded.path, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    rows = [loaded.tokenizer.encode(text) for text in TEXTS]
    width = max(map(len, rows))
    for side in ("left", "right"):
        ids, real = torch.zeros(3, width).long(), torch.zeros(3, width).bool()
        for row, tokens in enumerate(rows):
            place = slice(0, len(tokens)) if side == "right" else slice(width - len(tokens), width)
            ids[row, place], real[row, place] = torch.tensor(tokens), True
        states = theirs(
            ids, attention_mask=real.long(), position_ids=standing(real)
        ).last_hidden_state
        mean = (states * real[..., None]).sum(1) / real.sum(1)[:, None]
        wanted = torch.nn.functional.normalize(mean, dim=1)
        got = loaded.model(ids, real=real)
        assert (got - wanted).abs().max() < 1e-4
        for row, tokens in enumerate(rows):
            alone = loaded.model(torch.tensor([tokens]))
            assert (got[row] - alone[0]).abs().max() < 1e-5
    assert folder.exists()
