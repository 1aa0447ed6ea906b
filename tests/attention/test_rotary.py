from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama

from clearhead.attention.rotary import (
    LinearScaling,
    Llama3Scaling,
    Pairing,
    Rotary,
    RotaryScaling,
    YarnScaling,
    rotate,
)
from clearhead.errors import ConfigError, ShapeError

PAIRINGS: list[Pairing] = ["neighbours", "halves"]


def test_a_quarter_turn_by_hand() -> None:
    quarter = (
        Rotary(4, base=1.0)
        .at(torch.tensor([1]))
        ._replace(cos=torch.tensor([[0.0, 1.0]]), sin=torch.tensor([[1.0, 0.0]]))
    )
    states = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])  # (head, query, key_dim)
    # neighbours: (1, 2) turns to (-2, 1); halves: (1, 3) turns to (-3, 1).
    assert rotate(states, quarter, "neighbours").tolist() == [[[-2.0, 1.0, 3.0, 4.0]]]
    assert rotate(states, quarter, "halves").tolist() == [[[-3.0, 2.0, 1.0, 4.0]]]


def test_angles_by_hand() -> None:
    rotation = Rotary(4).at(torch.tensor([0, 1, 7]), torch.float64)
    assert rotation.cos.shape == rotation.sin.shape == (3, 2)
    for row, position in enumerate((0, 1, 7)):
        for pair, angle in enumerate((position, position / 100)):
            assert rotation.cos[row, pair].item() == pytest.approx(math.cos(angle), abs=1e-15)
            assert rotation.sin[row, pair].item() == pytest.approx(math.sin(angle), abs=1e-15)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_position_0_and_entries_beyond_the_width_stay(pairing: Pairing) -> None:
    states = torch.randn(2, 3, 5, 14)
    turned = rotate(states, Rotary(6).at(torch.arange(5)), pairing)
    assert turned[:, :, 0].equal(states[:, :, 0])
    assert turned[..., 6:].equal(states[..., 6:])
    assert not turned[:, :, 1:, :6].isclose(states[:, :, 1:, :6]).all()


@given(
    st.sampled_from(PAIRINGS),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 2**16),
)
def test_the_score_depends_only_on_the_distance(
    pairing: Pairing, query_at: int, key_at: int, shift: int, seed: int
) -> None:
    query, key = torch.randn(
        2, 1, 1, 1, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    rotary = Rotary(8, pairing=pairing)

    def turned(states: torch.Tensor, position: int) -> torch.Tensor:
        rotation = rotary.at(torch.tensor([position]), torch.float64)
        return rotate(states, rotation, pairing)

    near = (turned(query, query_at) * turned(key, key_at)).sum()
    far = (turned(query, query_at + shift) * turned(key, key_at + shift)).sum()
    torch.testing.assert_close(near, far, atol=1e-10, rtol=0)
    torch.testing.assert_close(turned(query, query_at).norm(), query.norm())


def test_rows_with_positions_of_their_own() -> None:
    states = torch.randn(2, 3, 5, 8)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    together = rotate(states, Rotary(8).at(positions))
    for row in range(2):
        assert together[row].equal(rotate(states[row], Rotary(8).at(positions[row])))


def test_halves_are_llama_in_transformers() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 1, 5, 8)
    positions = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])
    config = LlamaConfig(hidden_size=24, num_attention_heads=3)
    cos, sin = modeling_llama.LlamaRotaryEmbedding(config)(query, positions)
    theirs = modeling_llama.apply_rotary_pos_emb(query, key, cos, sin)
    rotation = Rotary(8).at(positions)
    torch.testing.assert_close(rotate(query, rotation), theirs[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(rotate(key, rotation), theirs[1], atol=1e-6, rtol=0)


def test_neighbours_are_gptj_in_transformers() -> None:
    torch.manual_seed(0)
    states = torch.randn(2, 3, 5, 8)  # theirs are (batch, query, head, width)
    sin, cos = modeling_gptj.create_sinusoidal_positions(5, 8)[None].chunk(2, dim=-1)
    theirs = modeling_gptj.apply_rotary_pos_emb(states.transpose(1, 2), sin, cos).transpose(1, 2)
    found = rotate(states, Rotary(8).at(torch.arange(5)), "neighbours")
    torch.testing.assert_close(found, theirs, atol=1e-6, rtol=0)


YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 256}
SCALINGS: list[tuple[dict[str, Any], RotaryScaling]] = [
    ({"rope_type": "linear", "factor": 4.0}, LinearScaling(4.0)),
    ({**LLAMA3, "low_freq_factor": 1.0, "high_freq_factor": 4.0}, Llama3Scaling(8.0, 256)),
    (
        {**LLAMA3, "low_freq_factor": 2.0, "high_freq_factor": 16.0},
        Llama3Scaling(8.0, 256, low_frequency_factor=2.0, high_frequency_factor=16.0),
    ),
    (YARN, YarnScaling(8.0, 512)),
    ({**YARN, "factor": 1.0}, YarnScaling(1.0, 512)),
    ({**YARN, "attention_factor": 1.5}, YarnScaling(8.0, 512, attention_factor=1.5)),
    (
        {**YARN, "beta_fast": 16.0, "beta_slow": 2.0},
        YarnScaling(8.0, 512, fast_turns=16.0, slow_turns=2.0),
    ),
    ({**YARN, "truncate": False}, YarnScaling(8.0, 512, whole_pairs=False)),
]


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize(("theirs", "ours"), SCALINGS, ids=str)
def test_scalings_are_those_of_transformers(
    theirs: dict[str, Any], ours: RotaryScaling, base: float
) -> None:
    config = LlamaConfig(
        hidden_size=3 * 64,
        num_attention_heads=3,
        max_position_embeddings=4096,
        rope_parameters={"rope_theta": base, **theirs},
    )
    wanted, gain = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, torch.device("cpu"))
    rotary = Rotary(64, base=base, scaling=ours)
    torch.testing.assert_close(rotary.frequencies().float(), wanted, atol=0, rtol=2e-6)
    assert ours.gain == pytest.approx(gain)
    assert not torch.allclose(rotary.frequencies(), Rotary(64, base=base).frequencies()) or (
        theirs["factor"] == 1.0
    )


def test_the_gain_reaches_the_rotated_vectors() -> None:
    states = torch.randn(1, 1, 3, 8, dtype=torch.float64)
    rotary = Rotary(8, scaling=YarnScaling(4.0, 64))
    turned = rotate(states, rotary.at(torch.arange(3), torch.float64))
    gain = 0.1 * math.log(4.0) + 1
    torch.testing.assert_close(turned.norm(dim=-1), gain * states.norm(dim=-1))


def test_far_positions_stay_exact() -> None:
    far = Rotary(2).at(torch.tensor([1_000_003]))
    assert far.cos.item() == pytest.approx(math.cos(1_000_003), abs=1e-7)


def test_half_precision_keeps_its_type() -> None:
    states = torch.randn(1, 2, 3, 8).bfloat16()
    assert rotate(states, Rotary(8).at(torch.arange(3))).dtype == torch.bfloat16


@pytest.mark.parametrize("width", [0, 5, -2])
def test_a_width_without_pairs(width: int) -> None:
    with pytest.raises(ConfigError, match=rf"turns pairs, so its width must be even; got {width}"):
        Rotary(width)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_pairing() -> None:
    with pytest.raises(ConfigError, match="one of 'neighbours', 'halves'; got 'interleaved'"):
        Rotary(8, pairing="interleaved")  # type: ignore[arg-type]


def test_more_than_a_head_has() -> None:
    with pytest.raises(ShapeError, match=r"rotary width 10 is more than the head's 8 entries"):
        rotate(torch.randn(1, 2, 3, 8), Rotary(10).at(torch.arange(3)))
