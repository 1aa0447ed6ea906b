"""How a tensor came about: from a product of queries and keys to the output of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from clearhead.trace.watching.axis_digits import Dim, Label

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


OTHER_AXIS = "its softmax does not go over the keys of one query"


@dataclass(frozen=True)
class Part:
    """A tensor that took part in a step, with the label that the scores had then."""

    tensor: Tensor
    label: Label


@dataclass(frozen=True)
class Trail:
    """How a tensor came from a product of queries and keys."""

    query: Tensor  # (z, n, width)
    key: Tensor  # (z, m, width)
    label: Label  # where the axes z, n, m of the product are now
    scale: float = 1.0
    capped: float | None = None  # the factor after a tanh
    added: tuple[Part, ...] = ()
    factors: tuple[Part, ...] = ()  # numbers for each row that the scores were multiplied with
    hidden: tuple[Part, ...] = ()  # True = may not attend
    fill: float = 0.0  # the number that hidden scores got
    opaque: bool = False  # some step does not fit the formula
    kind: str = "scores"  # then "exp", "log", "weights"; "mixed", if these were changed afterwards
    dropout: float = 0.0
    version: int | None = None
    shifted: bool = False  # a number of its own was taken from each row
    rest: float = 0.0  # what was added to the sum of exponentials
    talking: bool = False  # heads were mixed before the softmax: "g" in the label counts new ones
    before: tuple[Source, ...] = ()  # of mixed or dropped weights: what they were made of


@dataclass(frozen=True)
class Source:
    """Weights as a softmax gave them, before they were mixed."""

    trail: Trail
    weights: Tensor
    heads: Dim = ()  # those that were mixed with one another; (): none

    @property
    def whole(self) -> bool:
        """True if nobody has written over them since."""
        return self.trail.version in (None, version(self.weights))


@dataclass(eq=False)
class Pending:
    """A call whose second product was taken, until its heads are joined."""

    trail: Trail
    weights: Tensor
    value: Tensor  # (z, m, value width), z as the weights have it
    output: Tensor
    label: Label  # of the output as it came
    joined: Label | None = None  # of the output with its heads joined to the width
    place: Any = None
    versions: tuple[int, ...] = ()
    parts: tuple[Pending, ...] = ()  # calls whose outputs were stacked: what they are shows later


Found: TypeAlias = Trail | Pending | None
Step: TypeAlias = "Callable[[UnfusedMode, Any, tuple[Any, ...], dict[str, Any]], Found]"


def weak_memory(tensor: Tensor) -> StorageWeakRef:
    """The memory of a tensor, without keeping it: an address alone may be given away again."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def version(tensor: Tensor) -> int | None:
    """How many times a tensor was written to; inference tensors do not count it."""
    return None if tensor.is_inference() else tensor._version
