"""Position as rotation (RoPE, Su et al. 2021).

Pair i of a query or key at position p is turned by the angle p · base^(−2i/width), so that the
score of two rotated vectors depends only on their distance. Which entries form a pair differs:

- ``neighbours``: entries 2i and 2i + 1, the paper's way (GPT-J, original Llama weights, GGUF);
- ``halves``: entries i and i + width/2 (GPT-NeoX, Llama in transformers).

Longer contexts than trained on are reached by slowing the rotation: linearly, by Llama 3's rule,
or by YaRN (Peng et al. 2023), which also sharpens the scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.arguments import one_of, real_number, shown, whole_number
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.tensors import dense_tensor, float_type

Pairing: TypeAlias = Literal["neighbours", "halves"]
MOST_WIDTH = 2**24  # of one head: no model comes near
POSITIONS = (torch.int64, torch.int32)


class Rotation(NamedTuple):
    """Cosine and sine of each position's angles."""

    cos: Float[Tensor, "*batch query pair"]
    sin: Float[Tensor, "*batch query pair"]


@dataclass(frozen=True)
class LinearScaling:
    """Every rotation slowed by one factor (Chen et al. 2023)."""

    factor: float

    def slow(self, frequencies: Tensor, width: int, base: float) -> Tensor:  # noqa: ARG002
        """The slowed frequencies."""
        return frequencies / self.factor

    @property
    def gain(self) -> float:
        """The factor on the rotated vectors."""
        return 1.0


@dataclass(frozen=True)
class Llama3Scaling:
    """Long waves slowed by the factor, short waves left alone, those between blended."""

    factor: float
    original_context: int
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0

    def slow(self, frequencies: Tensor, width: int, base: float) -> Tensor:  # noqa: ARG002
        """The slowed frequencies."""
        turns = self.original_context * frequencies / (2 * math.pi)  # within the trained context
        span = self.high_frequency_factor - self.low_frequency_factor
        keep = ((turns - self.low_frequency_factor) / span).clamp(0.0, 1.0)
        return (1 - keep) * frequencies / self.factor + keep * frequencies

    @property
    def gain(self) -> float:
        """The factor on the rotated vectors."""
        return 1.0


@dataclass(frozen=True)
class YarnScaling:
    """Waves that turn often are kept, slow ones stretched, and scores sharpened (YaRN)."""

    factor: float
    original_context: int
    fast_turns: float = 32.0
    slow_turns: float = 1.0
    attention_factor: float | None = None
    whole_pairs: bool = True  # the ramp starts and ends at a whole pair

    def slow(self, frequencies: Tensor, width: int, base: float) -> Tensor:
        """The slowed frequencies."""

        def pair_that_turns(times: float) -> float:
            return (
                width
                * math.log(self.original_context / (times * 2 * math.pi))
                / (2 * math.log(base))
            )

        low, high = pair_that_turns(self.fast_turns), pair_that_turns(self.slow_turns)
        if self.whole_pairs:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, width - 1)
        pair = torch.arange(len(frequencies), dtype=frequencies.dtype, device=frequencies.device)
        stretch = ((pair - low) / max(high - low, 0.001)).clamp(0.0, 1.0)
        return stretch * frequencies / self.factor + (1 - stretch) * frequencies

    @property
    def gain(self) -> float:
        """The factor on the rotated vectors."""
        if self.attention_factor is not None:
            return self.attention_factor
        return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0


@dataclass(frozen=True)
class FactorScaling:
    """Each rotation slowed by a factor of its own, as GGUF files of Llama 3 spell its rule out."""

    factors: tuple[float, ...]

    def slow(self, frequencies: Tensor, width: int, base: float) -> Tensor:  # noqa: ARG002
        """The slowed frequencies."""
        if len(self.factors) != len(frequencies):
            raise ConfigError(
                f"wanted a factor for each of {len(frequencies)} pairs; got {len(self.factors)}."
            )
        return frequencies / torch.tensor(self.factors, dtype=frequencies.dtype)

    @property
    def gain(self) -> float:
        """The factor on the rotated vectors."""
        return 1.0


RotaryScaling: TypeAlias = LinearScaling | Llama3Scaling | YarnScaling | FactorScaling


@dataclass(frozen=True)
class Rotary:
    """Rotary position settings: ``width`` entries of each head are rotated, in which pairing and
    with which scaling; the others stay."""

    width: int
    base: float = 10_000.0
    pairing: Pairing = "halves"
    scaling: RotaryScaling | None = None

    def __post_init__(self) -> None:
        width = whole_number("the width of rotary", self.width, most=MOST_WIDTH, error=ConfigError)
        if width < 2 or width % 2:
            raise ConfigError(f"rotary turns pairs, so its width must be even; got {width}.")
        real_number("the base of rotary", self.base, above=0, error=ConfigError)
        one_of("pairing", self.pairing, get_args(Pairing), error=ConfigError)
        if self.scaling is not None and not isinstance(self.scaling, RotaryScaling):
            raise ConfigError(
                f"scaling must be a rotary scaling, such as LinearScaling(4.0); got "
                f"{shown(self.scaling)}."
            )

    def frequencies(self) -> Float[Tensor, " pair"]:
        """The angle by which each pair turns from one position to the next."""
        pair = torch.arange(0, self.width, 2, dtype=torch.float64)
        frequencies = float(self.base) ** (-pair / self.width)
        if self.scaling is None:
            return frequencies
        return self.scaling.slow(frequencies, self.width, self.base)

    def at(
        self, positions: Int[Tensor, "*batch query"], dtype: torch.dtype = torch.float32
    ) -> Rotation:
        """Cosine and sine at these positions; angles are computed in float64."""
        dtype = float_type("dtype", dtype)
        if dense_tensor("positions", positions).dtype not in POSITIONS:
            raise InputError(f"positions must be whole numbers; got {positions.dtype}.")
        angle = positions[..., None] * self.frequencies().to(positions.device)
        gain = 1.0 if self.scaling is None else self.scaling.gain
        return Rotation((angle.cos() * gain).to(dtype), (angle.sin() * gain).to(dtype))


def rotate(
    states: Float[Tensor, "*batch head query key_dim"],
    rotation: Rotation,
    pairing: Pairing = "halves",
) -> Float[Tensor, "*batch head query key_dim"]:
    """Turn each pair of queries or keys by its angle; entries beyond the rotary width stay."""
    cos, sin = (part.unsqueeze(-3).to(states.dtype) for part in rotation)  # one for all heads
    width = 2 * cos.shape[-1]
    if width > states.shape[-1]:
        raise ShapeError(
            f"rotary width {width} is more than the head's {states.shape[-1]} entries."
        )
    turned, rest = states[..., :width], states[..., width:]
    if pairing == "halves":
        first, second = turned.chunk(2, dim=-1)
        turned = torch.cat(_turned(first, second, cos, sin), dim=-1)
    else:
        first, second = turned[..., 0::2], turned[..., 1::2]
        turned = torch.stack(_turned(first, second, cos, sin), dim=-1).flatten(-2)
    return turned if rest.shape[-1] == 0 else torch.cat([turned, rest], dim=-1)


def _turned(first: Tensor, second: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """The pair (first, second) turned by the angle; each product is added to as it is made."""
    return (
        (first * cos).addcmul_(second, sin, value=-1),
        (second * cos).addcmul_(first, sin),
    )
