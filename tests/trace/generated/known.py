"""Failures that are known, each with its cause: the list only becomes shorter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.trace.generated.spec import Spec
from tests.trace.generated.trial import Outcome


@dataclass(frozen=True)
class Known:
    """One cause: the simplest attention that has it, and how others with it are recognised."""

    reason: str
    kind: str  # of the failure
    example: Spec
    applies: Callable[[Spec], bool]


BLIND = ("blind rows", "causal + left padding")
KNOWN: list[Known] = [
    Known(
        "talking heads under autocast: a step below autograd gets two dtypes",
        "broken",
        Spec(softmax="talking before", autocast=True, gradient="inference_mode", seed=829718830),
        lambda spec: spec.softmax.startswith("talking") and spec.autocast,
    ),
    Known(
        "heads in modules of their own, called by forward(), for a single sequence",
        "wrong, called exact",
        Spec(
            layout="one module per head", softmax="sdpa", scale="none", batch=1, call="forward",
            seed=316398977,
        ),
        lambda spec: spec.layout == "one module per head" and spec.call == "forward",
    ),
    Known(
        "float64: a row that is hidden by a finite number alone",
        "wrong, not exact",
        Spec(
            pattern="causal + left padding", hidden_by="−1e9", dtype="float64", seed=62484229,
        ),
        lambda spec: spec.dtype == "float64" and not spec.hidden_by.startswith("−inf"),
    ),
    Known(
        "float64: a row that is hidden by different minima",
        "false alarm",
        Spec(
            pattern="blind rows", hidden_by="mixed", dtype="float64", sizes="equal", seed=5812423,
        ),
        lambda spec: spec.dtype == "float64" and not spec.hidden_by.startswith("−inf"),
    ),
    Known(
        "a ring buffer: a query may attend to a slot behind its own",
        "false alarm",
        Spec(pattern="causal", mask_step="assign scores", cache="ring", seed=987108365),
        lambda spec: spec.cache == "ring",
    ),
    Known(
        "a ring buffer under sdpa: slots are taken for positions",
        "wrong, not exact",
        Spec(
            softmax="sdpa", pattern="causal", mask_axes=3, scale="none", cache="ring",
            seed=616974352,
        ),
        lambda spec: spec.cache == "ring",
    ),
    Known(
        "a cropped cache: the first row of another continuation",
        "wrong, not exact",
        Spec(softmax="clamp", pattern="causal", cache="crop", seed=399930349),
        lambda spec: spec.cache == "crop",
    ),
    Known(
        "scores in the hundreds: the proof's tolerance is that of usual ones",
        "false alarm",
        Spec(
            softmax="nn.MultiheadAttention", projection="fused", pattern="causal", scale="none",
            scores="large", declares="nothing", layers="two", seed=654833278,
        ),
        lambda spec: spec.scores == "large",
    ),
    Known(
        "scores in the hundreds: a weight is off by more than 1e-6",
        "wrong, called exact",
        Spec(
            softmax="sdpa", pattern="causal", scale="none", cache="cat", batch=3,
            value_width="other", scores="large", layers="two", seed=688668525,
        ),
        lambda spec: spec.scores == "large",
    ),
    Known(
        "float64: a blind row, hidden by a finite number, in windows",
        "wrong, called exact",
        Spec(
            layout="windows", pattern="blind rows", hidden_by="−1e9", dtype="float64", batch=3,
            sizes="equal", seed=409128146,
        ),
        lambda spec: spec.dtype == "float64" and not spec.hidden_by.startswith("−inf"),
    ),
    Known(
        "queries or keys of a fused call are written over before they are kept",
        "wrong, not exact",
        Spec(softmax="sdpa", scale="none", later="query zeroed", seed=16634596),
        lambda spec: spec.fused and spec.later != "nothing",
    ),
    Known(
        "a blind row whose output is NaN: nothing is compared with a mask that shows it a key",
        "lie not noticed",
        Spec(pattern="right padding", sizes="equal", seed=478772949),
        lambda spec: spec.pattern in BLIND or spec.sizes == "equal",
    ),
]  # fmt: skip


def known(outcome: Outcome) -> bool:
    """True if a failure has a known cause."""
    return any(one.kind == outcome.kind and one.applies(outcome.spec) for one in KNOWN)
