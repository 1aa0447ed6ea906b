"""Random numbers depend on the seed and the purpose, and on nothing else."""

from __future__ import annotations

import torch

from clearhead.training.random_seed import generator_for, seed_for, seeded_for


def test_the_same_on_every_machine() -> None:
    """The first 7 bytes of 19934812387279530-256 of "step/5/3", computed with sha256sum."""
    assert seed_for("step", 5, 3) == 19934812387279530
    assert seed_for("step", 5, 3) != seed_for("step", 53)


def test_generators_of_two_purposes_differ() -> None:
    draws = [torch.rand(7, generator=generator_for(purpose, 5)) for purpose in "aab"]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_the_global_generator_continues_as_before() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(5)
    torch.manual_seed(3)
    with seeded_for("dropout", 1):
        inside = torch.rand(5)
    assert torch.equal(torch.rand(5), wanted) and not torch.equal(inside, wanted)
    with seeded_for("dropout", 1):
        assert torch.equal(torch.rand(5), inside)
