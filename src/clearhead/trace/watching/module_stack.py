"""The modules that are running right now: they say where in the model a call comes from."""

from __future__ import annotations

import functools
import inspect
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from clearhead.trace.watching.observed_call import ACTIVE

_ATTENTION = re.compile(r"atten|attn", re.IGNORECASE)
# multihead_attn is what nn.TransformerDecoderLayer calls its attention to the memory.
_CROSS = re.compile(r"cross|enc_?dec|encoder_attn|^multihead_attn$", re.IGNORECASE)
_LEAVES = re.compile(r"norm|linear|dropout|embedding|mlp|activation|rotary|gelu|silu|conv", re.I)
_SOURCES = ("key_value_states", "encoder_hidden_states", "context", "memory")


@dataclass(slots=True)
class Frame:
    """One module that is running."""

    path: str
    module: nn.Module
    attention: bool  # by its name and structure it computes attention
    cross: bool
    uses_mode: bool  # calls of torch's functions are observed while it runs


def attention_modules(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that compute attention, by their names: the innermost ones with parameters."""
    named = {
        path: module
        for path, module in model.named_modules()
        if _ATTENTION.search(type(module).__name__)
        and next(module.parameters(), None) is not None
        and not _LEAVES.search(type(module).__name__)
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
    """The running modules of one model, in one thread; the model is left as it was by close()."""

    def __init__(
        self,
        model: nn.Module,
        entered: Callable[[str, tuple[Any, ...], dict[str, Any]], None],
    ) -> None:
        self.attention = attention_modules(model)
        self.frames: list[Frame] = []
        self.forward = 0  # how many times the model was entered from outside
        self.ran: set[str] = set()  # attention modules that ran
        self._entered = entered
        self._thread = threading.get_ident()
        self._handles: list[RemovableHandle] = []
        stacks = _stacks(self.attention)
        for path, module in model.named_modules():
            uses_mode = _needs_mode(module, path, self.attention)
            if uses_mode or path in self.attention or path in stacks:
                self._hook(path, module, uses_mode)

    def place(self) -> Frame | None:
        """The innermost running attention module; if there is none, the innermost module."""
        for frame in reversed(self.frames):
            if frame.attention:
                return frame
        return self.frames[-1] if self.frames else None

    def close(self) -> None:
        """Take all hooks away again."""
        while self.frames:
            self._leave()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._entered = _ignore  # the recorder holds this stack: a reference cycle keeps records

    def _leave(self) -> Frame:
        frame = self.frames.pop()
        if frame.uses_mode:
            ACTIVE.leave_mode()
        return frame

    def _hook(self, path: str, module: nn.Module, uses_mode: bool) -> None:
        attention = path in self.attention
        is_cross = looks_cross(path, module)
        reads_ids = type(module).__module__ == "clearhead.models.stack"
        may_say = attention or isinstance(module, nn.MultiheadAttention)

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if threading.get_ident() != self._thread:
                return
            self.forward += not self.frames
            if not self.frames or reads_ids:
                self._entered(path, args, kwargs)
            cross = is_cross or (may_say and _called_cross(path, module, args, kwargs))
            uses = uses_mode and not _has_own_door(module)
            self.frames.append(Frame(path, module, attention, cross, uses))
            if uses:
                ACTIVE.enter_mode()
            if attention:
                self.ran.add(path)

        def leave(module: nn.Module, _args: Any, _output: Any) -> None:
            if threading.get_ident() != self._thread:
                return
            while self.frames and self._leave().module is not module:
                pass

        self._handles += [
            module.register_forward_pre_hook(enter, with_kwargs=True),
            module.register_forward_hook(leave, always_call=True),
        ]


def _ignore(_path: str, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
    """The callback after close()."""


def _stacks(attention: Iterable[str]) -> set[str]:
    """The whole model, and parts with several attention modules: where a forward may begin."""
    parts = [path.split(".") for path in attention]
    inside = Counter(".".join(path[:depth]) for path in parts for depth in range(1, len(path)))
    return {"", *(path for path, count in inside.items() if count > 1)}


def _needs_mode(module: nn.Module, path: str, attention: dict[str, nn.Module]) -> bool:
    """True if a module's own code may compute attention with torch's functions."""
    kind: Any = type(module)
    names = _names_in_code(kind)
    if path in attention:
        return "ALL_ATTENTION_FUNCTIONS" not in names
    if type(module).__module__.startswith("torch.nn.modules"):
        # While the mode is on, nn.TransformerEncoder does without its one fused operation.
        return type(module).__name__.startswith("Transformer")
    return "scaled_dot_product_attention" in names or "multi_head_attention_forward" in names


@functools.cache
def _names_in_code(kind: Any) -> frozenset[str]:
    """Every global name and attribute that the methods of a module's class use."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base is nn.Module:
            break
        for member in vars(base).values():
            code = getattr(inspect.unwrap(member) if callable(member) else None, "__code__", None)
            names.update(getattr(code, "co_names", ()))
    return frozenset(names)


def _has_own_door(module: nn.Module) -> bool:
    """Our own attention has a door of its own, save where dropout makes it take the plain path."""
    if type(module).__module__ != "clearhead.layers.multi_head":
        return False
    return not (module.training and bool(getattr(module, "dropout", 0.0)))


def _called_cross(
    path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """True if this call passes another sequence to attend to."""
    if isinstance(module, nn.MultiheadAttention):
        query = args[0] if args else kwargs.get("query")
        key = args[1] if len(args) > 1 else kwargs.get("key")
        return key is not query and "self" not in path
    return any(isinstance(kwargs.get(name), Tensor) for name in _SOURCES)


class Coverage:
    """Attention modules that ran, and which of them were seen."""

    def __init__(self, stack: ModuleStack) -> None:
        self._stack = stack
        self.seen: set[str] = set()  # paths of modules with at least one call seen
        self.refused: dict[str, str] = {}  # path: why a call could not be reproduced

    @property
    def unseen(self) -> dict[str, str]:
        """Paths of attention modules that ran but were not seen, each with the reason."""
        silent = {
            path: "computes attention by itself" for path in self._ran() if path not in self.seen
        }
        reasons = {path: f"was refused: {reason}" for path, reason in self.refused.items()}
        return {**silent, **reasons}

    @property
    def missed(self) -> str:
        """ "23 of 24 attention modules watched; `x.y.z` computes attention by itself", or ""."""
        unseen = self.unseen
        if not unseen:
            return ""
        ran = set(self._ran()) | self.seen | set(unseen)
        reasons = [f"`{path}` {reason}" for path, reason in sorted(unseen.items())]
        shown = reasons[:3] + ([f"and {len(reasons) - 3} more"] if len(reasons) > 3 else [])
        return f"{len(ran) - len(unseen)} of {len(ran)} attention modules watched; " + "; ".join(
            shown
        )

    def __str__(self) -> str:
        ran = set(self._ran()) | self.seen
        return self.missed or f"{len(ran)} of {len(ran)} attention modules watched"

    def _ran(self) -> list[str]:
        return sorted(self._stack.ran)
