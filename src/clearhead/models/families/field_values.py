"""Values of a config.json's fields, turned into ours: heads, activations, layers, tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.field_rules import Fields

MOST_LAYERS = 10_000  # so that a hostile config.json cannot make us count to a trillion
ACTIVATION_NAMES = {
    "relu": "relu", "gelu": "gelu", "gelu_python": "gelu", "silu": "silu", "swish": "silu",
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast",
                     "gelu_accurate", "gelu_tanh"), "gelu_tanh"),
}  # fmt: skip


def head_of(fields: Fields, known: Mapping[str, Any]) -> Any:
    """The head that the architecture's name implies; the first known one without a name."""
    named = fields.get("architectures")
    if not named:
        return next(iter(known.values()))
    architecture = named[0] if isinstance(named, list | tuple) else named
    for name, head in known.items():
        if str(architecture).lower() == name.lower():
            return head
    raise CheckpointError(
        f"config.json: architectures names {str(architecture)[:60]}, a head that is not known.",
        hint=f"known are {', '.join(known)}.",
    )


def apart(value: float, other: float) -> float | None:
    """The value, or None where it is the other one: a config says only what differs."""
    return None if value == other else value


def window_marks(layers: int, marked: Callable[[int], bool]) -> tuple[bool, ...]:
    """Return for each layer whether it attends within a window only."""
    if layers > MOST_LAYERS:
        raise CheckpointError(f"{layers} layers; no model has more than {MOST_LAYERS}.")
    return tuple(marked(layer) for layer in range(layers))


def activation_of(fields: Fields, name: str) -> Any:
    """Our name of the activation that the field ``name`` holds."""
    given = fields[name]
    if not isinstance(given, str) or given not in ACTIVATION_NAMES:
        raise CheckpointError(
            f"config.json: {name} is {str(given)[:60]!r}, an activation that is not known.",
            hint=f"known are {', '.join(ACTIVATION_NAMES)}.",
        )
    return ACTIVATION_NAMES[given]


def layer_kinds(fields: Fields, layers: int, window: int | None) -> tuple[bool, ...] | None:
    """For each layer whether it attends within a window, by layer_types; None without them."""
    kinds = fields.get("layer_types")
    if kinds is None:
        return None
    known = {"sliding_attention": True, "full_attention": False, "attention": False}
    unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in known]
    if unknown:
        raise CheckpointError(
            f"config.json: layer_types names {str(unknown[0])[:60]!r}, which is not known.",
            hint="known are full_attention and sliding_attention.",
        )
    if len(kinds) != layers:
        raise CheckpointError(
            f"config.json: layer_types has {len(kinds)} entries for {layers} layers."
        )
    marks = tuple(known[kind] for kind in kinds)
    if window is None and any(marks):
        raise CheckpointError(
            "config.json: layer_types names sliding_attention, and sliding_window gives no window."
        )
    return marks


def written_kinds(config: ModelConfig) -> list[str]:
    """The reverse of :func:`layer_kinds`."""
    marks = (config.windowed(layer) for layer in range(config.layers))
    return ["sliding_attention" if mark else "full_attention" for mark in marks]


def public_activation(config: ModelConfig) -> str:
    """The reverse of :func:`activation_of`."""
    return "gelu_pytorch_tanh" if config.activation == "gelu_tanh" else config.activation


def token_ids(given: Any) -> tuple[int, ...]:
    """An id, a list of ids or nothing, as a tuple."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def first_token(given: Any) -> int | None:
    """The first of some ids, if there is any."""
    return next(iter(token_ids(given)), None)


def one_or_all(ids: tuple[int, ...]) -> int | list[int] | None:
    """The reverse of :func:`token_ids`."""
    if len(ids) > 1:
        return list(ids)
    return ids[0] if ids else None
