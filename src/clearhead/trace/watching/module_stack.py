"""The modules that are running right now: they say where in the model a call comes from."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from clearhead.trace.watching.code_names import (
    INTERFACE,
    may_attend,
    names_in_attributes,
    names_in_code,
)
from clearhead.trace.watching.hooks.resting_hooks import (
    SOURCES,
    Resting,
    RestingHooks,
    may_get_sources,
)
from clearhead.trace.watching.hooks.watch_hook import WatchHook
from clearhead.trace.watching.hooks.wrapped_forward import WrappedForward

_ATTENTION = re.compile(r"atten|attn", re.IGNORECASE)
# multihead_attn is what nn.TransformerDecoderLayer calls its attention to the memory.
_CROSS = re.compile(r"cross|enc_?dec|encoder_attn|^multihead_attn$", re.IGNORECASE)
_LEAVES = re.compile(r"norm|linear|dropout|embedding|mlp|activation|rotary|gelu|silu|conv\b", re.I)
_OWN_PATH = "reorder_and_upcast_attn"  # GPT-2 goes by the attention interface unless it has this
_transform = torch._C._functorch.peek_interpreter_stack
_STACK_DEPTH = 60  # Python frames that are searched for a module that has no hook


@dataclass(slots=True)
class Frame:
    """One module that is running."""

    path: str
    module: nn.Module
    attention: bool  # by its name and structure it computes attention
    cross: bool
    owner: object = None  # the stack that it belongs to
    leave: Callable[[], None] | None = None  # ends what was begun with the module
    batch: tuple[int, ...] = field(default=())  # shape of the first tensor that it was given
    in_vmap: bool = False  # torch.vmap runs it: a kernel may be called once for each sample
    at: Frame | None = field(
        default=None, compare=False, repr=False
    )  # the innermost one when the module calls its attention function: this
    # one, or the one around it while the module's hooks rest; None: this one is of one call only
    understood: bool = False  # steps of it were: its hooks may rest


# A tuple, never changed in place: a context that is copied (a task, a thread) keeps its own.
_FRAMES: ContextVar[tuple[Frame, ...]] = ContextVar("frames", default=())


running_frames = _FRAMES.get  # the running modules of this context, of whichever model


def modules_of(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Every module with its path, once, in the order of ``named_modules``, which takes six times as
    long: a watch around one short forward would notice."""
    found: list[tuple[str, nn.Module]] = []
    known: set[int] = set()
    waiting: list[tuple[str, nn.Module]] = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in known:
            continue
        known.add(id(module))
        found.append((path, module))
        inside = f"{path}." if path else ""
        waiting += [
            (inside + name, child)
            for name, child in reversed(module._modules.items())
            if child is not None
        ]
    return found


@functools.cache
def _is_called_attention(name: str) -> bool:
    """True if a class is attention by its name, and no part of one."""
    return bool(_ATTENTION.search(name)) and not _LEAVES.search(name)


def attention_modules(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that compute attention, by their names: the innermost ones with parameters."""
    return _innermost_attention(modules_of(model))


def _innermost_attention(modules: list[tuple[str, nn.Module]]) -> dict[str, nn.Module]:
    named = {
        path: module
        for path, module in modules
        if _is_called_attention(type(module).__name__)
        and next(module.parameters(), None) is not None
    }
    return {
        path: module
        for path, module in named.items()
        if not any(inner.startswith(f"{path}." if path else "") for inner in named if inner != path)
    }


def looks_cross(path: str, module: nn.Module) -> bool:
    """True if a module is cross-attention by its name or by an attribute of its own."""
    parts = path.split(".")
    declared = getattr(module, "crossing", None) or getattr(module, "is_cross_attention", None)
    last = [part for part in parts[-2:] if not part.isdigit()]
    named = any(_CROSS.search(part) for part in last) or "Cross" in type(module).__name__
    return declared is True or named


class ModuleStack:
    """The running modules of one model, in each context; close() leaves the model as it was.

    ``begin`` is called for a module whose own code may compute attention step by step; what it
    returns is called when the module ends. ``elsewhere`` hears of modules that run in a context
    which this watch does not belong to. ``whole`` says what observes a module as a whole, after it
    has run with its arguments; None: nothing does. ``modules``: :func:`modules_of` the model, if
    that is known.
    """

    def __init__(
        self,
        model: nn.Module,
        entered: Callable[[str, tuple[Any, ...], dict[str, Any]], None],
        begin: Callable[[], Callable[[], None]] | None = None,
        is_here: Callable[[], bool] = lambda: True,
        elsewhere: Callable[[str], None] = lambda _: None,
        whole: Callable[[nn.Module], Callable[..., None] | None] = lambda _: None,
        modules: list[tuple[str, nn.Module]] | None = None,
    ) -> None:
        modules = modules_of(model) if modules is None else modules
        self.attention = _innermost_attention(modules)
        self.forward = 0  # how many times the model was entered from outside
        self.ran: set[str] = set()  # attention modules that ran
        self._entered, self._begin = entered, begin
        self._is_here, self._elsewhere = is_here, elsewhere
        self._whole = whole
        self._handles: list[RemovableHandle | WrappedForward] = []
        self._resting = RestingHooks()
        self._may_rest: dict[str, tuple[Frame, Resting]] = {}  # by path
        self._hookless = [
            path for path, module in modules if isinstance(module, nn.TransformerEncoderLayer)
        ]  # a hook on any of their modules would make them leave their fast path
        self._paths = {id(module): path for path, module in modules}
        stacks = _stacks(self.attention)
        for path, module in modules:
            steps = _steps_out(module, path in self.attention)
            if steps or path in self.attention or path in stacks:
                self._hook(path, module, steps)

    @property
    def frames(self) -> list[Frame]:
        """The running modules of this model, the innermost last."""
        return [frame for frame in _FRAMES.get() if frame.owner is self]

    def place(self) -> Frame | None:
        """The innermost running attention module; if there is none, the innermost module."""
        frames = _FRAMES.get()
        for frame in reversed(frames):
            if frame.owner is self and frame.attention:
                return frame
        return self._by_python(next((f for f in reversed(frames) if f.owner is self), None))

    def _by_python(self, known: Frame | None) -> Frame | None:
        """The module whose method is running, by Python's own stack: it may have no hook."""
        frame = sys._getframe(2)
        for _ in range(_STACK_DEPTH):
            code = frame.f_code  # a method's first argument is its module, whatever it is called
            module = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if isinstance(module, nn.Module) and id(module) in self._paths:
                path = self._paths[id(module)]
                if known is not None and known.path == path:
                    return known
                batch, vmap = ((), False) if known is None else (known.batch, known.in_vmap)
                named, cross = path in self.attention, looks_cross(path, module)
                return Frame(path, module, named, cross, self, batch=batch, in_vmap=vmap)
            if frame.f_back is None:
                break
            frame = frame.f_back
        return known

    def close(self) -> None:
        """Take all hooks away again."""
        for frame in reversed(self.frames):
            self._leave(frame)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._resting.forget()
        for usual, _ in self._may_rest.values():
            usual.at = None  # itself: a cycle would keep the model
        self._may_rest.clear()
        # The recorder holds this stack: a reference cycle would keep records.
        self._entered, self._begin = _ignore, None
        self._is_here, self._elsewhere = _nowhere, _ignore

    def _leave(self, frame: Frame) -> None:
        running = _FRAMES.get()
        alone = running and running[-1] is frame
        _FRAMES.set(
            running[:-1] if alone else tuple(other for other in running if other is not frame)
        )
        if frame.leave is not None:
            frame.leave()

    def _leave_late(self, module: nn.Module) -> None:
        """A module ended whose inner ones did not say so: an error went through them."""
        frames = self.frames
        if not any(frame.module is module for frame in frames):
            return
        for frame in reversed(frames):
            self._leave(frame)
            if frame.module is module:
                return

    def _hook(self, path: str, module: nn.Module, steps: bool) -> None:
        attention, observer = path in self.attention, self._whole(module)
        steps = steps and observer is None
        is_cross = looks_cross(path, module)
        reads_ids = type(module).__module__ == "clearhead.models.stack"
        may_say = attention or steps
        # A module that does nothing but attend through an interface runs in every step.
        often = attention and not steps and not reads_ids and observer is None
        usual = Frame(path, module, attention, is_cross, self)  # nothing in it is of one call

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            try:
                running = _FRAMES.get()
                inside = often and running and running[-1].owner is self
                if inside and (is_cross or SOURCES.isdisjoint(kwargs)) and _transform() is None:
                    _FRAMES.set((*running, usual))
                    self.ran.add(path)
                else:
                    begin(module, args, kwargs)
            except Exception:  # the model goes on; what it computes is then missed, and said to be
                self.ran.add(path)

        def begin(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not self._is_here():
                if may_say:
                    self._elsewhere(path)
                return
            running = _FRAMES.get()
            inside = bool(running) and running[-1].owner is self
            outermost = not inside and not any(frame.owner is self for frame in running)
            self.forward += outermost
            if outermost or reads_ids:
                self._entered(path, args, kwargs)
            cross = is_cross or (may_say and _called_cross(path, module, args, kwargs))
            frame = usual if cross == is_cross else Frame(path, module, attention, cross, self)
            if steps and self._begin is not None and not _has_own_door(module):
                frame = Frame(path, module, attention, cross, self)
                frame.batch = _first_shape(args, kwargs)
                frame.leave = self._begin()
            if not _untransformed() and in_vmap():
                frame = replace(frame, in_vmap=True)
            _FRAMES.set((*running, frame))
            if attention:
                self.ran.add(path)

        def leave(module: nn.Module, _args: Any, _output: Any) -> None:
            running = _FRAMES.get()
            if running and running[-1] is usual:
                _FRAMES.set(running[:-1])
                if usual.understood and usual.at is usual:
                    self._rest(path, running)
            elif running and running[-1].module is module and running[-1].owner is self:
                self._leave(running[-1])
            else:
                self._leave_late(module)

        def leave_whole(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if observer is not None and self._is_here():
                observer(module, args, kwargs, output)
            leave(module, args, output)

        if any(_is_within(path, layer) for layer in self._hookless):
            self._handles.append(WrappedForward(module, enter, leave))
            return
        begins, ends = WatchHook(enter), WatchHook(leave if observer is None else leave_whole)
        begins.stack = ends.stack = self  # by which others know that they change nothing
        whole = observer is not None
        handles = [
            module.register_forward_pre_hook(begins, with_kwargs=True),
            module.register_forward_hook(ends, always_call=True, with_kwargs=whole),
        ]
        self._handles += handles
        usual.at = usual
        self._may_rest[path] = usual, Resting(module, enter, leave, handles if often else ())

    def _rest(self, path: str, running: tuple[Frame, ...]) -> None:
        """A module ends of which steps were understood: from now on the door runs its hooks, and
        the frame around it is the innermost one then."""
        usual, hooks = self._may_rest[path]
        kind: Any = type(hooks.module)
        usual.understood = False  # asked once
        outer = running[-2] if len(running) > 1 else None
        stays = outer is not None and outer.owner is self and outer.at is outer
        if stays and hooks.handles and (usual.cross or not may_get_sources(kind)):
            usual.at = outer
            self._resting.add(hooks)


def _ignore(*_: Any) -> None:
    """The callback after close()."""


def _nowhere() -> bool:
    return False


def _is_within(path: str, other: str) -> bool:
    """True for the module at the other path and those inside of it; "" is the whole model."""
    return path == other or other == "" or path.startswith(f"{other}.")


def _stacks(attention: Iterable[str]) -> set[str]:
    """The whole model, and parts with several attention modules: where a forward may begin."""
    parts = [path.split(".") for path in attention]
    inside = Counter(".".join(path[:depth]) for path in parts for depth in range(1, len(path)))
    return {"", *(path for path, count in inside.items() if count > 1)}


def _steps_out(module: nn.Module, named: bool = False) -> bool:
    """True if a module's own code may compute attention step by step with torch's operations.

    Not followed: what goes through the attention interface of transformers, which has a door of its
    own, and torch's own modules but the one for attention.
    """
    kind: Any = type(module)
    if kind is nn.MultiheadAttention or kind.__module__ == "clearhead.layers.multi_head":
        return True
    if kind.__module__.startswith("torch.nn.modules"):
        return False
    names = names_in_code(kind)
    if "forward" in names and any(_steps_out(child) for child in _within(module)):
        return True  # it calls a child's method, and no hook hears of that
    by_itself = INTERFACE not in names or getattr(module, _OWN_PATH, False)
    return by_itself and (named or may_attend(names) or may_attend(names_in_attributes(module)))


def _within(module: nn.Module) -> Iterator[nn.Module]:
    """The children of a module, those in lists and tables too: it may call their methods."""
    for child in module.children():
        yield child
        if isinstance(child, nn.ModuleList | nn.ModuleDict | nn.Sequential):
            yield from _within(child)


def _has_own_door(module: nn.Module) -> bool:
    """Our own attention has a door of its own, save where dropout makes it take the plain path."""
    if type(module).__module__ != "clearhead.layers.multi_head":
        return False
    return not (module.training and bool(getattr(module, "dropout", 0.0)))


def _untransformed() -> bool:
    """True outside of torch.func."""
    return _transform() is None


def in_vmap() -> bool:
    """True inside of torch.vmap."""
    transforms = torch._C._functorch.get_interpreter_stack() or ()
    return any(one.key() == torch._C._functorch.TransformType.Vmap for one in transforms)


def _first_shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    given = next((part for part in (*args, *kwargs.values()) if isinstance(part, Tensor)), None)
    return () if given is None or given.is_nested else tuple(given.shape)


def _same_tensor(one: Any, other: Any) -> bool:
    """True if two are one tensor, or views of the same numbers."""
    if one is other or not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return one is other
    if one.is_nested or other.is_nested or one.shape != other.shape:
        return False
    return one.data_ptr() == other.data_ptr() and one.stride() == other.stride()


def _called_cross(
    path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """True if this call passes another sequence to attend to."""
    if isinstance(module, nn.MultiheadAttention):
        query = args[0] if args else kwargs.get("query")
        key = args[1] if len(args) > 1 else kwargs.get("key")
        return not _same_tensor(query, key) and "self" not in path
    return not SOURCES.isdisjoint(kwargs) and any(
        isinstance(kwargs.get(name), Tensor) for name in SOURCES
    )
