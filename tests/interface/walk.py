"""The walk: every argument of every call, replaced by every bad value, and what came of it."""

from __future__ import annotations

import dataclasses
import re
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import clearhead as ch
from clearhead.errors import ShapeError
from tests.interface import subjects
from tests.interface.calls import CALLS, Call
from tests.interface.surface import parameters, surface
from tests.interface.values import PLAIN, SINGLE, Make, other_values, quietly

SECONDS = 2.0  # of computing that a call may take
GOOD = ("accepted", "refused", "unmade")
BYTES = 3 * 2**30  # that a call may take beyond what the process has


class TooSlowError(BaseException):
    """A call took too long. No Exception, so that nobody catches it on the way."""


@dataclass(frozen=True)
class Case:
    """One argument of one call, and the value that takes its place."""

    call: str
    argument: str
    value: str
    make: Make

    @property
    def place(self) -> str:
        """The argument, by the name of the call and its own."""
        return f"{self.call}.{self.argument}"

    @property
    def function(self) -> str:
        """The argument, by the name of its function and its own."""
        return f"{function_of(self.call)}.{self.argument}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case: "accepted", "refused", or a fault with its reason."""

    case: Case
    kind: str
    reason: str = ""


def cases(names: Sequence[str] | None = None) -> Iterator[Case]:
    """Every case, in a fixed order."""
    for name, call in CALLS.items():
        if names is not None and name not in names:
            continue
        for argument in _arguments(name, call):
            for value, make in SINGLE.items():
                if (f"{function_of(name)}.{argument}", value) in LONG:
                    continue
                yield Case(name, argument, value, make)
            valid = call.arguments().get(argument)
            if isinstance(valid, Tensor) and valid.ndim:
                for value, make in other_values(valid):
                    yield Case(name, argument, value, make)


def function_of(name: str) -> str:
    """The name on the surface: "attention" for "attention, plain"."""
    return name.partition(",")[0]


def _arguments(name: str, call: Call) -> list[str]:
    """All arguments; for ``**fields`` those that the valid call has."""
    target = surface()[function_of(name)]
    given = list(call.arguments())
    listed = parameters(target)
    return [*dict.fromkeys([*(n for n in listed if n not in ("fields", "changes")), *given])]


def outcome(case: Case) -> Outcome:
    """Call it, and judge what comes."""
    call = CALLS[case.call]
    try:
        value = quietly(case.make)
    except Exception as error:  # this value cannot be made of this tensor
        return Outcome(case, "unmade", repr(error))
    try:
        result = _limited(call, {case.argument: value})
    except TooSlowError:
        return Outcome(case, "too slow", f"more than {SECONDS:g} s")
    except ch.ClearheadError as error:
        return _refused(case, error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if case.function in FUNCTIONS and callable(value):
            return Outcome(case, "accepted", "the error of a function that the caller gave")
        return Outcome(case, "raw", f"{type(error).__name__}: {str(error)[:200]}")
    return _accepted(case, call, value, result)


def _refused(case: Case, error: ch.ClearheadError) -> Outcome:
    if case.function in FUNCTIONS and callable(quietly(case.make)):
        return Outcome(case, "accepted", "an error inside of a function that the caller gave")
    words = (*ALIASES.get(case.argument, ()), case.argument)
    if isinstance(error, ShapeError):  # two that do not fit: either may be wrong
        words += tuple(_arguments(case.call, CALLS[case.call]))
    text = str(error)
    if not any(re.search(rf"(?<![a-z]){word}", text, re.IGNORECASE) for word in words):
        return Outcome(case, "unnamed", text[:200])
    return Outcome(case, "refused", f"{type(error).__name__}: {text[:160]}")


def _accepted(case: Case, call: Call, value: Any, result: Any) -> Outcome:
    plain = _plain(case, call)
    if plain is not _NOTHING:
        try:
            wanted = _limited(call, {case.argument: plain})
        except Exception as error:
            return Outcome(case, "different", f"accepted, but {plain!r:.80} is not: {error}")
        if not same(result, wanted):
            return Outcome(case, "different", f"not what {plain!r:.80} gives")
    if function_of(case.call) == "attention":
        defaults = dict.fromkeys(("mask", "bias", "window", "scale", "softcap", "sinks"))
        arguments = {**defaults, "causal": False, **call.arguments(), case.argument: value}
        try:
            steps = _limited(CALLS["attention_steps"], arguments)
        except ch.ClearheadError as error:
            return Outcome(case, "different", f"attention_steps refuses it: {error}")
        if not same(result, steps):
            return Outcome(case, "different", "not what attention_steps gives")
    return Outcome(case, "accepted")


_NOTHING = object()


def _plain(case: Case, call: Call) -> Any:
    """The ordinary value that an unusual one stands for."""
    if case.value in PLAIN and not isinstance(call.arguments().get(case.argument), Tensor):
        return PLAIN[case.value]()
    if case.value.startswith("the same") and case.value in SAME:
        return SAME[case.value](call.arguments()[case.argument])
    return _NOTHING


SAME: dict[str, Callable[[Tensor], Tensor]] = {
    "the same, not contiguous": lambda tensor: tensor,
    "the same, expanded": lambda tensor: tensor[:1].expand_as(tensor).clone(),
    "the same as NumPy": lambda tensor: tensor,
    "the same as a list": lambda tensor: tensor,
    "the same as a parameter": lambda tensor: tensor,
    "the same, learned": lambda tensor: tensor,
    "the same as torch.int32": lambda tensor: tensor.long(),
    "the same as torch.uint8": lambda tensor: tensor.long(),
}


def same(one: Any, other: Any) -> bool:
    """True if two results are equal, numbers within rounding."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape:
            return False
        if one.is_meta or other.is_meta:
            return one.is_meta and other.is_meta
        wide = torch.float64
        tolerance = 1e-2 if torch.finfo(torch.bfloat16).eps in _epsilons(one, other) else 1e-5
        return torch.allclose(
            one.detach().to(wide), other.detach().to(wide), tolerance, tolerance, equal_nan=True
        )
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray | Tensor):
        return bool(np.allclose(one, np.asarray(other), 1e-5, 1e-5))
    if isinstance(one, int | float | str) and isinstance(other, int | float | str):
        return one == other
    if type(one) is not type(other):
        return isinstance(one, Tensor) and same(np.asarray(one), np.asarray(other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        fields = dataclasses.fields(one)
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields)
    return True  # modules and the like: their kind is equal


def _epsilons(*tensors: Tensor) -> list[float]:
    return [torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point()]


def _limited(call: Call, changed: dict[str, Any]) -> Any:
    """Call it; the second time if the first was slow, as it may have compiled something."""
    for attempt in (0, 1):
        torch.manual_seed(13)
        try:
            place = subjects.new_path()
            place.mkdir()
            with _alarm(SECONDS if attempt else 5 * SECONDS), _quiet(), chdir(place):
                start = time.process_time()
                result = call(changed)
                if time.process_time() - start <= SECONDS:
                    return result
        except TooSlowError:
            if attempt:
                raise
    raise TooSlowError


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise after so many seconds of computing, or ten times as many of waiting."""

    def ring(_: int, __: FrameType | None) -> None:
        raise TooSlowError

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, 10))
    before = {which: signal.signal(which, ring) for which, _, _ in timers}
    for _, timer, times in timers:
        signal.setitimer(timer, times * seconds)
    try:
        yield
    finally:
        for which, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(which, before[which])


@contextmanager
def confined() -> Iterator[None]:
    """A call that wants much memory fails, and files with odd names go where nobody looks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + BYTES, hard))
    try:
        with chdir(subjects.place()):
            yield
    finally:
        with suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# Valid, and long: the reference text of Python, a model of the usual size.
LONG = frozenset((("train.texts", "None"), ("train.model", "None")))
# Arguments that are functions of the caller: what they raise is the caller's own.
FUNCTIONS = frozenset(
    {
        *("MultiHeadAttention.activation", "MultiHeadAttention.norm", "load.progress"),
        *("why.progress", "patch_map.progress", "train.stop"),
        *("roles.progress", "roles.forward", "roles.spacy"),
        *("Property.targets", "PropertyFamily.members"),
    }
)
# Other words by which an error may name an argument.
ALIASES: dict[str, tuple[str, ...]] = {
    "batch_keys_embedding": ("keys",),
    "batch_query_embedding": ("query",),
    "seen": ("mask", "look", "worked example", "model", "no attention"),
    "other": ("mask",),
    "real": ("mask",),
    "ids": ("an id", "token id"),
    "source": ("text", "token id", "key", "value"),
    "target": ("token id",),
    "states": ("query", "key", "value"),
    "context": ("key", "value"),
    "cache": ("key",),
    "model": ("rotary", "session", "source"),
    "key_dim": ("rotary",),
    "rotary_width": ("rotary",),
    "rotary_base": ("base of rotary",),
    "window_rotary_base": ("base of rotary",),
    "text": ("description", "word"),
    "properties": ("property",),
    "layers": ("not in this model",),
    "keep": ("kept",),
    "out": ("folder", "is not empty", "cannot write"),
    "row": ("word",),
    "column": ("word",),
    "rows": ("row", "word"),
    "columns": ("column", "word"),
    "chosen": ("row", "column", "word"),
    "name": ("head", "layer"),
    "layer": ("head",),
    "corpus": ("text", "sentence", "file"),
    "texts": ("text", "pair", "read"),
    "validation": ("text", "pair", "read"),
    "start_from": ("model",),
    "before": ("diff", "look", "model", "text", "word", "layer"),
    "after": ("diff", "look", "model", "text", "word", "layer"),
    "bytes": ("limit",),
    "seconds": ("limit",),
    "id": ("token id",),
    "path": ("wanted a", "safetensors", "cannot write"),
    "folder": ("cannot write",),
    "prompt": ("text", "token id"),
    "engine": ("engine",),
    "fields": ("description", "field", "setting", "steps or minutes", "a model has no"),
}
