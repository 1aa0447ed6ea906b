"""Where in the model a call comes from: the modules that are running right now."""

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

from clearhead.trace.sighting import ACTIVE

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
    looks: bool  # whether torch's functions are looked at because of it


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
    """Whether a module is cross-attention by its name or by what it says of itself."""
    parts = path.split(".")
    says = getattr(module, "crossing", None) or getattr(module, "is_cross_attention", None)
    last = [part for part in parts[-2:] if not part.isdigit()]
    named = any(_CROSS.search(part) for part in last) or "Cross" in type(module).__name__
    return says is True or named


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
            looks = _needs_looking(module, path, self.attention)
            if looks or path in self.attention or path in stacks:
                self._hook(path, module, looks)

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
        self._entered = _nobody  # who listened holds this: a circle would keep what was seen

    def _leave(self) -> Frame:
        frame = self.frames.pop()
        if frame.looks:
            ACTIVE.look_away()
        return frame

    def _hook(self, path: str, module: nn.Module, looks: bool) -> None:
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
            looking = looks and not _tells_by_itself(module)
            self.frames.append(Frame(path, module, attention, cross, looking))
            if looking:
                ACTIVE.look()
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


def _nobody(_path: str, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
    """Listens when nobody does any more."""


def _stacks(attention: Iterable[str]) -> set[str]:
    """The whole model, and parts with several attention modules: where a forward may begin."""
    parts = [path.split(".") for path in attention]
    inside = Counter(".".join(path[:depth]) for path in parts for depth in range(1, len(path)))
    return {"", *(path for path, count in inside.items() if count > 1)}


def _needs_looking(module: nn.Module, path: str, attention: dict[str, nn.Module]) -> bool:
    """Whether a module's own code may compute attention with torch's functions."""
    kind: Any = type(module)
    names = _names_in_code(kind)
    if path in attention:
        return "ALL_ATTENTION_FUNCTIONS" not in names
    if type(module).__module__.startswith("torch.nn.modules"):
        # While somebody looks, nn.TransformerEncoder does without its one fused operation.
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


def _tells_by_itself(module: nn.Module) -> bool:
    """Our own attention has a door of its own, save where dropout makes it take the plain path."""
    if type(module).__module__ != "clearhead.layers.multi_head":
        return False
    return not (module.training and bool(getattr(module, "dropout", 0.0)))


def _called_cross(
    path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether this call hands over another sequence to attend to."""
    if isinstance(module, nn.MultiheadAttention):
        query = args[0] if args else kwargs.get("query")
        key = args[1] if len(args) > 1 else kwargs.get("key")
        return key is not query and "self" not in path
    return any(isinstance(kwargs.get(name), Tensor) for name in _SOURCES)
