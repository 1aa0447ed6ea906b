"""From our matrices to PEFT's names and back; matrices that hold several of ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.checkpoints.adapters.adapter import LowRank
from clearhead.checkpoints.adapters.config_file import AdapterConfig
from clearhead.checkpoints.adapters.tensor_names import from_theirs, module_of, to_theirs
from clearhead.errors import CheckpointError
from clearhead.models.families.family import family_named
from tests.shared.tiny_models import Tiny

BLOCK = "stack.blocks.1.attention."
FUSED = "transformer.h.1.attn.c_attn"
START = "base_model.model."
Models = Callable[[str], Tiny]


def low_rank(rank: int, seed: int, scale: float = 0.5) -> LowRank:
    torch.manual_seed(seed)
    return LowRank(torch.randn(rank, 42), torch.randn(42, rank), scale)


@pytest.mark.parametrize("names", [("query", "key", "value"), ("value",), ("query", "value")])
def test_parts_of_one_matrix(tiny: Models, names: tuple[str, ...]) -> None:
    config = tiny("gpt2").ours.config
    given = {f"{BLOCK}{name}.weight": low_rank(2 + n, n, 0.5 + n) for n, name in enumerate(names)}
    theirs = to_theirs(given, config)
    assert list(theirs) == [FUSED]
    rows = dict(
        zip(("query", "key", "value"), torch.split(theirs[FUSED].difference, 42), strict=True)
    )
    for name, part in rows.items():
        wanted = given[f"{BLOCK}{name}.weight"].difference if name in names else torch.zeros(42, 42)
        torch.testing.assert_close(part, wanted, atol=1e-4, rtol=1e-4)


def test_a_shared_a_stays_one(tiny: Models) -> None:
    """What PEFT trained on a fused matrix is written as it was."""
    config = tiny("gpt2").ours.config
    a, b = torch.randn(3, 42), torch.randn(126, 3)
    tensors = {f"{START}{FUSED}.lora_A.weight": a, f"{START}{FUSED}.lora_B.weight": b}
    ours = from_theirs(tensors, AdapterConfig("base", 6.0), config, "here")
    assert sorted(ours) == [f"{BLOCK}{name}.weight" for name in ("key", "query", "value")]
    again = to_theirs(ours, config)[FUSED]
    assert torch.equal(again.a, a) and torch.equal(again.b, b) and again.scale == 2.0


def test_names_of_bare_models(tiny: Models) -> None:
    for name, wanted in (("bert", "encoder.layer.0.attention.self.query"),
                         ("bert-masked", "bert.encoder.layer.0.attention.self.query")):  # fmt: skip
        config = tiny(name).ours.config
        family = family_named("bert")
        source = family.sources(config)["stack.blocks.0.attention.query.weight"]
        assert module_of(source, family, config) == wanted


PLACE = f"{START}model.layers.0.self_attn.q_proj"
A, B = torch.zeros(2, 42), torch.zeros(60, 2)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({f"{PLACE}.lora_A.weight": A}, "only one of the two"),
        ({f"{PLACE}.lora_A.weight": A, f"{PLACE}.lora_B.weight": B.T}, "do not fit"),
        ({f"{PLACE}.lora_A.weight": A.long(), f"{PLACE}.lora_B.weight": B}, "do not fit"),
        ({f"{PLACE}.lora_A.weight": A + torch.nan, f"{PLACE}.lora_B.weight": B}, "not finite"),
        ({f"{PLACE}.weight": A}, "adapters of matrices are known"),
        ({f"{START}x.lora_A.weight": A, f"{START}x.lora_B.weight": B}, "adapts x, which a llama"),
    ],
)
def test_tensors_that_are_refused(tiny: Models, tensors: dict[str, Tensor], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        from_theirs(tensors, AdapterConfig("base", 6.0), tiny("llama").ours.config, "here")


def test_names_with_the_name_of_the_adapter(tiny: Models) -> None:
    tensors = {f"{PLACE}.lora_A.default.weight": A, f"{PLACE}.lora_B.default.weight": B}
    config = tiny("llama").ours.config
    assert list(from_theirs(tensors, AdapterConfig("base", 6.0), config, "here")) == [
        "stack.blocks.0.attention.query.weight"
    ]
