"""Embeddings and output matrices that are one tensor or several: as the file has them.

The reference is transformers, which reads the same folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.errors import CheckpointError
from tests.shared.config_fields import KINDS, Kind
from tests.shared.tiny_models import assert_same

pytestmark = pytest.mark.usefixtures("quiet_transformers", "one_thread")
OUTPUT = {
    "bert": "cls.predictions.decoder.weight", "distilbert": "vocab_projector.weight",
    "bart": "lm_head.weight", "marian": "lm_head.weight", "t5": "lm_head.weight",
    "llama": "lm_head.weight", "gpt2": "lm_head.weight",
}  # fmt: skip
SIDES = {
    "bart": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
    "marian": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
    "t5": ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),
}
BIAS = "cls.predictions.decoder.bias"


def theirs_of(kind: Kind, folder: Path) -> Any:
    import transformers

    made = getattr(transformers, kind.model)
    return made.from_pretrained(folder, attn_implementation="eager").eval()


def folder_with(kind: Kind, folder: Path, added: dict[str, Tensor], tied: bool) -> Path:
    """A folder whose config.json says tied or not, and whose file has tensors of its own."""
    raw = kind.raw(tie_word_embeddings=True)
    kind.save(kind.reference(raw), raw, folder)
    path = folder / "model.safetensors"
    tensors = load_file(path) | added
    save_file(tensors, path, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(raw | {"tie_word_embeddings": tied}))
    return folder


def matrix() -> Tensor:
    return 0.25 * torch.randn(97, 42)


def own_matrices(name: str) -> list[tuple[str, ...]]:
    """Every choice of matrices that a file may have apart."""
    output = OUTPUT[name]
    sides = SIDES.get(name, ())
    found: list[tuple[str, ...]] = [(output,)]
    if sides:
        first, second = sides
        found += [(first,), (second,), (output, *sides)]
    if name == "bart":  # pairs; the others are read by the same code
        found += [sides, (output, first), (output, second)]
    return found


CASES = [
    (name, own, tied) for name in OUTPUT for own in own_matrices(name) for tied in (True, False)
    if tied or own in ((OUTPUT[name],), (OUTPUT[name], *SIDES.get(name, ())))
]  # fmt: skip


@pytest.mark.parametrize(("name", "own", "tied"), CASES)
def test_matrices_apart(name: str, own: tuple[str, ...], tied: bool, tmp_path: Path) -> None:
    kind = KINDS[name]
    if not tied and name in ("bart", "marian") and len(own) == 1:
        return  # transformers would invent the embeddings
    torch.manual_seed(7)
    added = {place: matrix() for place in own}
    if name == "bert" and not tied:
        added[BIAS] = torch.randn(97)
    folder = folder_with(kind, tmp_path / "first", added, tied)
    theirs, loaded = theirs_of(kind, folder), ch.load(folder)
    wanted = kind.theirs(theirs)
    assert_same(loaded.model(*kind.inputs()), wanted)
    check_apart(name, loaded, own)
    in_memory = ch.load(theirs)
    assert_same(in_memory.model(*kind.inputs()), wanted)
    assert in_memory.config.tied == loaded.config.tied
    saved = ch.save(loaded.model, tmp_path / "saved")
    again = ch.load(saved)
    assert again.config.resolved() == loaded.config.resolved()
    assert torch.equal(again.model(*kind.inputs()), loaded.model(*kind.inputs()))
    assert_same(kind.theirs(theirs_of(kind, saved)), wanted)


def check_apart(name: str, loaded: Loaded, own: tuple[str, ...]) -> None:
    if name not in SIDES:
        assert not loaded.config.tied
        return
    first, second = SIDES[name]
    assert loaded.config.shared_embedding == (first not in own and second not in own)
    assert loaded.config.tied == (OUTPUT[name] not in own and second not in own)


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_equal_copies_are_one(name: str, tmp_path: Path) -> None:
    """Old files hold the same matrix under all of its names."""
    kind = KINDS[name]
    folder = folder_with(kind, tmp_path, {}, tied=True)
    tensors = load_file(folder / "model.safetensors")
    shared = next(tensors[name] for name in tensors if name.endswith("shared.weight"))
    copies = {place: shared.clone() for place in (*SIDES[name], OUTPUT[name])}
    save_file(tensors | copies, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = ch.load(folder)
    assert loaded.config.tied and loaded.config.shared_embedding
    assert_same(loaded.model(*kind.inputs()), kind.theirs(theirs_of(kind, folder)))


def test_the_bias_of_the_decoder_counts(tmp_path: Path) -> None:
    kind = KINDS["bert"]
    folder = folder_with(kind, tmp_path, {BIAS: torch.randn(97)}, tied=True)
    loaded = ch.load(folder)
    assert loaded.config.tied
    assert_same(loaded.model(*kind.inputs()), kind.theirs(theirs_of(kind, folder)))


def test_a_bias_that_is_not_there_is_zero(tmp_path: Path) -> None:
    kind = KINDS["bart"]
    folder = folder_with(kind, tmp_path, {}, tied=True)
    tensors = load_file(folder / "model.safetensors")
    del tensors["final_logits_bias"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = ch.load(folder)
    assert_same(loaded.model(*kind.inputs()), kind.theirs(theirs_of(kind, folder)))


def test_waves_in_the_file_must_be_the_waves(tmp_path: Path) -> None:
    kind = KINDS["marian"]
    name = "model.encoder.embed_positions.weight"
    waves = kind.reference(kind.raw()).state_dict()[name]
    folder = folder_with(kind, tmp_path / "same", {name: waves.clone()}, tied=True)
    assert_same(ch.load(folder).model(*kind.inputs()), kind.theirs(theirs_of(kind, folder)))
    for number, other in enumerate((waves + 0.1, waves[0], torch.zeros(3, 5))):
        folder = folder_with(kind, tmp_path / str(number), {name: other.clone()}, tied=True)
        with pytest.raises(CheckpointError, match=f"{name} differs from what models of this kind"):
            ch.load(folder)
