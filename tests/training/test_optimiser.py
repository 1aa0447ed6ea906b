"""Optimisers: which parameters go where, and a state with names."""

from __future__ import annotations

import pytest
import torch

from clearhead.errors import CheckpointError
from clearhead.training.initialisation import fresh_model
from clearhead.training.optimiser import Optimiser
from clearhead.training.settings import OptimiserName, TrainingSettings
from clearhead.training.sizes import language_config

CONFIG = language_config(
    "tiny", 31, model=12, layers=1, heads=2, feed_forward=10, context=16, dropout=0.0
)


def trained(steps: int, optimiser: OptimiserName = "muon") -> tuple[torch.nn.Module, Optimiser]:
    model = fresh_model(CONFIG, 3)
    made = Optimiser(model, TrainingSettings(steps=9, optimiser=optimiser))
    for step in range(steps):
        step_once(model, made, step)
    return model, made


def step_once(model: torch.nn.Module, optimiser: Optimiser, step: int) -> None:
    optimiser.clear()
    generator = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimiser.set_rate(0.5)
    optimiser.step()


def test_muon_takes_the_matrices_of_blocks_and_adamw_the_rest() -> None:
    model, optimiser = trained(1)
    matrices = {name for name, p in model.named_parameters() if "blocks." in name and p.ndim == 2}
    names = {key.rpartition("/") for key in optimiser.state()}
    assert {name for name, _, what in names if what == "momentum"} == matrices
    rest = {name for name, _ in model.named_parameters()} - matrices
    assert {name for name, _, what in names if what == "exp_avg"} == rest
    _, alone = trained(1, "adamw")
    assert all(not key.endswith("/momentum") for key in alone.state())


@pytest.mark.parametrize("kind", ["muon", "adamw"])
def test_a_restored_optimiser_takes_the_same_step(kind: OptimiserName) -> None:
    whole, _ = trained(3, kind)
    model, optimiser = trained(2, kind)
    fresh = Optimiser(model, TrainingSettings(steps=9, optimiser=kind))
    fresh.restore({key: value.clone() for key, value in optimiser.state().items()})
    step_once(model, fresh, 2)
    for one, other in zip(model.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_rate_of_zero_changes_nothing() -> None:
    model, optimiser = trained(1)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimiser.set_rate(0.0)
    optimiser.step()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_state_of_a_parameter_that_does_not_exist() -> None:
    _, optimiser = trained(0)
    with pytest.raises(
        CheckpointError, match=r"1 entries are missing or unknown, such as 'a\.b/momentum'"
    ):
        optimiser.restore({"a.b/momentum": torch.zeros(2)})
