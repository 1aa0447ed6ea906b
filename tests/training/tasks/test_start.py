"""Training every family further: gradients and results as transformers has them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import clearhead as ch
from clearhead.checkpoints.adapters.base import Base, checksum_of_model
from clearhead.checkpoints.weights import weights_of
from clearhead.errors import InputError
from clearhead.layers.low_rank import LowRankLinear
from clearhead.models.families.family import family_named
from clearhead.training.data.batches.batch import IGNORED, Batch, PackedBatch, PairBatch
from clearhead.training.data.batches.masked import MaskedBatch
from clearhead.training.data.batches.sentences import SentenceBatch
from clearhead.training.loop import train_task
from clearhead.training.objectives import objective_of
from clearhead.training.run_folder import RunFolder
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.parameters import adapt
from clearhead.training.tasks.start import base_of, start_of, with_dropout
from clearhead.training.tasks.task import Task
from tests.shared.tiny_models import ALL, ENCODER_DECODERS, ENCODERS, Tiny, token_ids

Models = Callable[[str], Tiny]
TRAINED = [name for name in ALL if not name.endswith("-labels")]
STEP: dict[str, Any] = {"steps": 1, "optimiser": "adamw", "learning_rate": 1e-3, "warmup": 0}


@dataclasses.dataclass
class One:
    """The same batch for ever."""

    only: Batch
    batches_per_pass: int = 1

    def batch(self, number: int) -> Batch:
        return self.only


def batch_for(name: str) -> Batch:
    """A batch of unequal rows, as its family learns from."""
    ids, counts = token_ids(3, 13, seed=3), torch.tensor([13, 7, 11])
    outside = torch.arange(13) >= counts[:, None]
    if name in ENCODER_DECODERS:
        targets = token_ids(3, 11, seed=5).masked_fill(outside[:, :11], IGNORED)
        return PairBatch(ids=token_ids(3, 11, seed=7), targets=targets, source=ids,
                         source_counts=counts)  # fmt: skip
    if name.endswith("-masked"):
        targets = ids.masked_fill(outside | (ids % 3 > 0), IGNORED)
        return MaskedBatch(ids.masked_fill(targets != IGNORED, 4), targets, counts=counts)
    if name in ENCODERS:
        targets = torch.where(torch.arange(13) == 0, 0, IGNORED).expand(3, 13)
        return SentenceBatch(ids, targets, counts=counts,
                             second=token_ids(3, 5, seed=11),
                             second_counts=torch.tensor([5, 3, 2]))  # fmt: skip
    return PackedBatch(ids[:, :-1], ids[:, 1:])


def their_loss(theirs: Any, batch: Batch) -> Tensor:
    """The mean loss as transformers computes it, or from its hidden states."""
    if isinstance(batch, PairBatch):
        real = torch.arange(batch.source.shape[1]) < batch.source_counts[:, None]
        loss = theirs(input_ids=batch.source, attention_mask=real.long(),
                      decoder_input_ids=batch.ids, labels=batch.targets).loss  # fmt: skip
    elif isinstance(batch, MaskedBatch):
        real = torch.arange(batch.ids.shape[1]) < batch.counts[:, None]
        loss = theirs(batch.ids, attention_mask=real.long(), labels=batch.targets).loss
    elif isinstance(batch, SentenceBatch):
        first = their_embedding(theirs, batch.ids, batch.counts)
        second = their_embedding(theirs, batch.second, batch.second_counts)
        cosines = functional.cosine_similarity(first[:, None], second[None], dim=-1)
        loss = functional.cross_entropy(20 * cosines, torch.arange(len(cosines)))
    else:
        whole = torch.cat([batch.ids, batch.targets[:, -1:]], dim=1)
        loss = theirs(whole, labels=whole, use_cache=False).loss
    assert isinstance(loss, Tensor)
    return loss


def their_embedding(theirs: Any, ids: Tensor, counts: Tensor) -> Tensor:
    real = torch.arange(ids.shape[1]) < counts[:, None]
    states = theirs(ids, attention_mask=real.long()).last_hidden_state
    return torch.stack([row[:count].mean(dim=0) for row, count in zip(states, counts, strict=True)])


@pytest.mark.parametrize("name", TRAINED)
def test_losses_and_gradients_are_those_of_transformers(tiny: Models, name: str) -> None:
    model, batch = tiny(name), batch_for(name)
    theirs = copy.deepcopy(model.theirs).eval().requires_grad_(True)
    ours = copy.deepcopy(model.ours).eval().requires_grad_(True)
    wanted = their_loss(theirs, batch)
    torch.autograd.backward(wanted)
    loss = objective_of(ours)(batch) / batch.tokens
    torch.autograd.backward(loss)
    torch.testing.assert_close(loss, wanted, atol=1e-5, rtol=1e-4)
    for parameter in ours.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    found = weights_of(ours, family_named(ours.config.family))
    named = dict(theirs.named_parameters())
    prefix = family_named(ours.config.family).prefix
    scale = max(float(p.grad.abs().max()) for p in named.values() if p.grad is not None)
    compared = 0
    for place, gradient in found.items():
        parameter = named.get(place, named.get(place.removeprefix(prefix)))
        if parameter is not None and parameter.grad is not None:
            torch.testing.assert_close(gradient, parameter.grad, atol=1e-5 * scale, rtol=1e-3)
            compared += 1
    assert compared >= 0.9 * sum(parameter.grad is not None for parameter in named.values())


@pytest.mark.parametrize("lora", [None, 3])
@pytest.mark.parametrize("name", TRAINED)
def test_one_step_then_transformers_opens_it(
    tiny: Models, name: str, lora: int | None, tmp_path: Path
) -> None:
    model, batch = tiny(name), batch_for(name)
    settings = TrainingSettings(**STEP, lora=lora)
    ours = copy.deepcopy(model.ours)
    adapt(ours, settings)
    base = None if lora is None else Base(str(model.folder), checksum_of_model(model.folder))
    task = Task(ours, None, One(batch), [batch], further=True, base=base)
    list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    result = tmp_path / "run"
    if lora is not None:
        assert not (result / "model.safetensors").exists()
        for module in ours.modules():
            if isinstance(module, LowRankLinear):
                assert module.low_rank_b.abs().max() > 0
        from clearhead.checkpoints.adapters.merge import merge

        result = merge(result, tmp_path / "merged")
    theirs = type(model.theirs).from_pretrained(result).eval()
    loaded = ch.load(result).model
    inputs = (batch.source, batch.ids) if isinstance(batch, PairBatch) else (batch.ids,)
    with torch.no_grad():
        output = theirs(**dict(zip(("input_ids", "decoder_input_ids"), inputs, strict=False)))
        wanted = output.logits if "logits" in output else output.last_hidden_state
        torch.testing.assert_close(loaded(*inputs), wanted, atol=2e-4, rtol=1e-3)
        torch.testing.assert_close(ours(*inputs), wanted, atol=2e-4, rtol=1e-3)
        assert (wanted - model.ours(*inputs)).abs().max() > 1e-4  # it has learned something


@pytest.mark.parametrize("name", [name for name in ALL if name.endswith("-labels")])
def test_classifiers_are_refused(tiny: Models, name: str) -> None:
    with pytest.raises(InputError, match="labelled texts are not known"):
        objective_of(tiny(name).ours)


def test_other_dropouts_share_the_weights(tiny: Models) -> None:
    model = tiny("llama").ours
    changed = with_dropout(model, {"dropout": 0.25, "attention_dropout": 0.5})
    assert changed.config.dropout == 0.25
    assert dict(changed.named_modules())["stack.blocks.1.attention"].dropout == 0.5
    for (name, one), (_, other) in zip(
        model.named_parameters(), changed.named_parameters(), strict=True
    ):
        assert one.data_ptr() == other.data_ptr(), name
    assert with_dropout(model, {}) is model


def test_an_adapter_is_not_adapted_again(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    settings = TrainingSettings(**STEP, lora=3)
    with pytest.raises(InputError, match="is an adapter already"):
        start_of(str(tmp_path), {}, settings)


def test_the_base_has_a_name_and_a_checksum(tiny: Models) -> None:
    folder = tiny("gpt2").folder
    assert base_of(str(folder), None) == Base(str(folder), checksum_of_model(folder))
    assert base_of("anything", folder).sha256 == checksum_of_model(folder)
