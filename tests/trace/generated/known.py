"""Failures that are known, each with its cause: the list only becomes shorter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.trace.generated.spec import THREE_AXES, Spec
from tests.trace.generated.trial import Outcome


@dataclass(frozen=True)
class Known:
    """One cause: the simplest attention that has it, and how others with it are recognised."""

    reason: str
    kind: str  # of the failure
    example: Spec
    applies: Callable[[Spec], bool]


KNOWN: list[Known] = [
    Known(
        "under a transform of torch.func the observer reads tensors that cannot be read",
        "broken",
        Spec(transform="vmap"),
        lambda spec: spec.transform != "none",
    ),
    Known(
        "autocast: the door does not call what the model would call",
        "changed",
        Spec(softmax="sdpa", scale="none", autocast=True),
        lambda spec: spec.autocast,
    ),
    Known(
        "the fast path of torch's own modules is left",
        "changed",
        Spec(softmax="nn.TransformerEncoderLayer", projection="bias", scale="none"),
        lambda spec: spec.whole,
    ),
    Known(
        "heads and sequences are told apart by an assumption",
        "wrong, called exact",
        Spec(layout="b (n h) d"),
        lambda spec: (
            spec.layout in (*THREE_AXES, "b n h d → h b", "b (n h) d", "b (h n) d", "windows")
            or spec.layout == "one module per head"
        ),
    ),
    Known(
        "weights are computed in float32, which is not enough",
        "wrong, called exact",
        Spec(scores="large", seed=677758878),
        lambda spec: spec.dtype == "float32",
    ),
    Known(
        "only classes whose names look like attention are followed",
        "silent",
        Spec(class_="MHSA"),
        lambda spec: True,
    ),
    Known(
        "without values the proof compares with its own formula",
        "lie not noticed",
        Spec(seed=384122617),
        lambda spec: True,
    ),
    Known(
        "what is written in place after the call changes the record; blind rows; ring buffers",
        "wrong, not exact",
        Spec(later="key scaled"),
        lambda spec: True,
    ),
    Known(
        "dropout makes the output differ from weight · value",
        "false alarm",
        Spec(mode="train, dropout", values=True),
        lambda spec: True,
    ),
]


def known(outcome: Outcome) -> bool:
    """True if a failure has a known cause."""
    return any(one.kind == outcome.kind and one.applies(outcome.spec) for one in KNOWN)
