"""PEFT's files: what is written is read back, and the numbers are those of the merged matrices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.adapters.adapter_folder import TENSORS, read_adapter, read_base
from clearhead.checkpoints.adapters.base import checksum_of_model
from clearhead.checkpoints.safetensors.file import SafetensorsFile
from clearhead.errors import CheckpointError
from tests.checkpoints.adapters.conftest import Adapted
from tests.shared.tiny_models import ALL, ENCODER_DECODERS, token_ids


@pytest.mark.parametrize("targets", ["all", "query, down"])
@pytest.mark.parametrize("name", ALL)
def test_loading_gives_what_the_adapters_compute(adapted: Adapted, name: str, targets: str) -> None:
    model, changed, folder = adapted(name, lora_targets=targets)
    inputs: tuple[torch.Tensor, ...] = (token_ids(2, 13),)
    inputs += (token_ids(2, 11),) if name in ENCODER_DECODERS else ()
    with torch.no_grad():
        wanted = changed(*inputs)
        torch.testing.assert_close(ch.load(folder).model(*inputs), wanted, atol=1e-3, rtol=1e-3)
        assert (wanted - model.ours(*inputs)).abs().max() > 1e-2


@pytest.mark.parametrize("name", ALL)
def test_the_files_hold_what_transformers_adds_to_its_matrices(adapted: Adapted, name: str) -> None:
    """By hand: each of transformers' own matrices plus alpha/r·B·A is the merged one."""
    model, _, folder = adapted(name)
    fields = json.loads((folder / "adapter_config.json").read_text())
    file = SafetensorsFile(folder / TENSORS)
    theirs = dict(model.theirs.named_modules())
    merged = {path: module.weight.detach().clone() for path, module in theirs.items()
              if path in fields["target_modules"]}  # fmt: skip
    assert sorted(merged) == fields["target_modules"]
    for path in merged:
        a, b = (file.tensor(f"base_model.model.{path}.lora_{half}.weight") for half in "AB")
        rank = fields["rank_pattern"].get(path, fields["r"])
        assert a.shape[0] == rank
        alpha = fields["alpha_pattern"].get(path, fields["lora_alpha"])
        added = alpha / rank * b @ a
        merged[path] += added.T if type(theirs[path]).__name__ == "Conv1D" else added
    ours = ch.load(folder)
    from clearhead.checkpoints.weights import weights_of
    from clearhead.models.families.family import family_named

    found = weights_of(ours.model, family_named(ours.config.family))
    prefix = family_named(ours.config.family).prefix
    for path, weight in merged.items():
        place = f"{path}.weight" if f"{path}.weight" in found else f"{prefix}{path}.weight"
        torch.testing.assert_close(found[place], weight, atol=1e-5, rtol=1e-4)


def test_the_base_is_known_by_its_checksum(adapted: Adapted, tmp_path: Path) -> None:
    model, _, folder = adapted("llama")
    base = read_base(folder)
    assert (base.name, base.sha256) == (str(model.folder), checksum_of_model(model.folder))
    fields = json.loads((folder / "adapter_config.json").read_text())
    other = tmp_path / "other"
    ch.save(model.ours.__class__(model.ours.config), other)
    (folder / "adapter_config.json").write_text(
        json.dumps(fields | {"base_model_name_or_path": str(other)})
    )
    with pytest.raises(
        CheckpointError, match=r"is not the model that the adapter in .* trained on"
    ):
        ch.load(folder)


def test_folders_that_are_not_whole(adapted: Adapted) -> None:
    model, _, folder = adapted("gpt2")
    assert read_adapter(folder, model.ours.config).base == read_base(folder)
    (folder / TENSORS).unlink()
    with pytest.raises(CheckpointError, match=f"no {TENSORS}"):
        ch.load(folder)


def test_an_adapter_of_an_adapter(adapted: Adapted) -> None:
    _, _, folder = adapted("llama")
    fields = json.loads((folder / "adapter_config.json").read_text())
    for base, message in ((str(folder), "is an adapter itself"), ("", "does not name the model")):
        (folder / "adapter_config.json").write_text(
            json.dumps(fields | {"base_model_name_or_path": base})
        )
        with pytest.raises(CheckpointError, match=message):
            ch.load(folder)
