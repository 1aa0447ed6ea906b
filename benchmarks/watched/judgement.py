"""One line of the table: everything that is checked about a watched model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import clearhead as ch
from watched.events import Event, attention_of
from watched.subject import Made, Subject
from watched.windows import with_every_key

NEAR = 1e-5  # two ways to the same weights in float32
FAULTS = ("BROKEN", "CHANGED", "WRONG", "SILENT", "NOT EXACT")


@dataclass(frozen=True)
class Line:
    """What came of one subject."""

    subject: Subject
    ran: int = 0  # attention calls
    seen: int = 0  # of them, with the right weights
    error: float | None = None  # the largest
    identical: bool | None = None
    verdict: str = ""
    reported: bool = False  # the package reports weights of its own, which were compared, too

    @property
    def sound(self) -> bool:
        """True if nothing is wrong, silent, changed or broken."""
        return not self.verdict.startswith(FAULTS)


@torch.no_grad()
def judged(subject: Subject) -> Line:
    """Make the model, run it unwatched and watched, and compare."""
    made = subject.make()
    torch.manual_seed(2)
    plain = list(tensors(made.run()))
    ran = _ran(made)
    torch.manual_seed(2)
    try:
        with ch.watch(made.model) as seen:
            watched = list(tensors(made.run()))
    except ch.ClearheadError as error:
        return Line(subject, len(ran), verdict=f"refused: {_first(error)}", identical=True)
    except Exception as error:
        return Line(subject, len(ran), verdict=f"BROKEN: {type(error).__name__}: {_first(error)}")
    identical = _identical(plain, watched)
    return _compared(subject, made, ran, seen, identical)


def _ran(made: Made) -> list[Event]:
    """The attention calls of one run."""
    if made.weights is not None:
        return [Event("", "fused", weights) for weights in made.weights()]
    torch.manual_seed(2)
    with attention_of(made.model) as found:
        made.run()
    return [with_every_key(made.model, event) for event in found.events]


def _compared(subject: Subject, made: Made, ran: list[Event], seen: Any, identical: bool) -> Line:
    shown = _shown(seen)
    matched, error, strange = _matched(shown, ran)
    reported = _own(made, [weights for _, _, weights in shown], ran)
    missing = [event for number, event in enumerate(ran) if number not in matched]
    largest = max([value for value in (error, reported) if value is not None], default=None)
    verdict = "exact"
    if not identical:
        verdict = "CHANGED"
    elif strange:
        verdict = f"WRONG: {strange[0]}"
    elif reported is not None and reported > 10 * NEAR:
        verdict = f"WRONG: {reported:.1g} from the weights that the package reports"
    elif missing:
        verdict = _of_missing(missing, seen)
    elif shown and not seen.verify().exact:
        verdict = f"NOT EXACT: {seen.verify()}"
    elif not ran:
        verdict = "no attention ran"
    return Line(subject, len(ran), len(matched), largest, identical, verdict, reported is not None)


def _shown(seen: Any) -> list[tuple[str, str, Tensor]]:
    """Name, path and weights of every layer in every run."""
    return [
        (
            layer.name,
            layer.path,
            torch.stack([run[layer.name].of(b).weights() for b in range(layer.batch)]),
        )
        for run in seen.runs
        for layer in run.layers
    ]


def _matched(
    shown: list[tuple[str, str, Tensor]], ran: Sequence[Event]
) -> tuple[set[int], float | None, list[str]]:
    """Which events are shown, the largest difference, and what is shown but never ran."""
    matched: set[int] = set()
    largest, strange = None, []
    for name, path, weights in shown:
        free = [number for number in range(len(ran)) if number not in matched]
        distances = [(distance(weights, ran[number].weights), number) for number in free]
        best, number = min(distances, default=(torch.inf, -1))
        if best > NEAR:
            strange.append(f"{name} (`{path}`) is {best:.1g} from any attention that ran")
            continue
        matched.add(number)
        largest = best if largest is None else max(largest, best)
    return matched, largest, strange


def distance(weights: Tensor, other: Tensor) -> float:
    """The largest difference, whichever way the other has its sequences, heads and queries."""
    keys = weights.shape[-1]
    extra = other.shape[-1] - keys
    if extra == 1 or (extra > 1 and not bool(other[..., keys:].any())):
        other = other[..., :keys]  # without a sink, which is no key, or keys that nobody sees
    if weights.numel() != other.numel() or other.shape[-1] != keys:
        return torch.inf
    here = weights.double().nan_to_num(0.0)
    return min(
        float((here - way).abs().max()) for way in _ways(here, other.double().nan_to_num(0.0))
    )


def _ways(weights: Tensor, other: Tensor) -> Iterator[Tensor]:
    """The other as (batch, head, query, key), in every order that models have."""
    batch, heads, queries, keys = weights.shape
    yield other.reshape(batch, heads, queries, keys)
    yield other.reshape(heads, batch, queries, keys).transpose(0, 1)
    yield other.reshape(batch, queries, heads, keys).transpose(1, 2)
    if other.ndim == 5:  # (batch, head, window, query, key)
        yield other.transpose(1, 2).reshape(batch, heads, queries, keys)


def _own(made: Made, shown: Sequence[Tensor], ran: Sequence[Event]) -> float | None:
    """The largest difference from the weights that the package itself reports.

    None if it reports none, or something else than what ran: scores, or means over heads.
    """
    if made.own is None or not shown:
        return None
    torch.manual_seed(2)
    try:
        reported = [one for one in _attentions(made.own()) if one.ndim == 4]
    except Exception:  # it reports none
        return None
    true = [one for one in reported if min(distance(one, event.weights) for event in ran) <= NEAR]
    nearest = [min(distance(one, other) for other in shown) for one in true]
    return max((one for one in nearest if one < torch.inf), default=None)


def _attentions(outputs: Any) -> Iterator[Tensor]:
    """Everything in a model's outputs that is named attentions, in outputs within outputs too."""
    if isinstance(outputs, dict):
        for name, value in outputs.items():
            if "attentions" in name:
                yield from tensors(value)
            elif isinstance(value, dict):
                yield from _attentions(value)


def _of_missing(missing: list[Event], seen: Any) -> str:
    """What is missing must be named with its module."""
    unseen = getattr(seen.coverage, "unseen", {})
    said = seen.missed
    silent = [event for event in missing if not _named(event.path, said, unseen)]
    if not said or silent:
        path = (silent or missing)[0].path
        return f"SILENT: {len(silent or missing)} calls of `{path}` …; it says: {said or 'nothing'}"
    return f"named: {said}"


def _named(path: str, said: str, unseen: Any) -> bool:
    """True if the module, or one around or in it, is named."""
    names = [*unseen, *(part for part in said.split("`")[1::2])]
    return any(
        path == name or path.startswith(f"{name}.") or name.startswith(f"{path}.") for name in names
    )


def tensors(outputs: Any) -> Iterator[Tensor]:
    """Every tensor of whatever a model returns."""
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, dict):
        for value in outputs.values():
            yield from tensors(value)
    elif isinstance(outputs, list | tuple):
        for value in outputs:
            yield from tensors(value)


def _identical(left: list[Tensor], right: list[Tensor]) -> bool:
    return len(left) == len(right) and all(
        one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
        for one, other in zip(left, right, strict=True)
        if one.is_floating_point()
    )


def _first(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
