"""``watch``: the exact attention of any torch model, on the fast path.

    with ch.watch(model) as seen:
        model(inputs)
    seen["L16H5"].row(9)

Every attention call of the model in this thread runs as it is; q, k and the log-sum-exp of each row
are kept (``record.py``). Calls that continue earlier ones (generation with a cache) are stitched
into one run. Any other forward starts a new run. ``seen`` shows the latest run, ``seen.runs`` holds
all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from clearhead.arguments import flag, shown
from clearhead.attention.observers import OBSERVERS
from clearhead.engine.observers import add_observer, remove_observer
from clearhead.errors import InputError
from clearhead.kernels.freed_memory import keep_freed_memory
from clearhead.trace.passage import check_tokenizer
from clearhead.trace.watching.doors.kernels import KERNELS
from clearhead.trace.watching.doors.own import own_call
from clearhead.trace.watching.doors.transformers import close_door, open_door, refuse_kernel
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.module_stack import modules_of
from clearhead.trace.watching.recorder import Recorder
from clearhead.trace.watching.watched import Watched
from clearhead.trace.watching.watchers import watchers


@contextmanager
def watch(
    model: Any,
    *,
    layers: int | str | Iterable[int | str] | None = None,
    heads: int | str | Iterable[int | str] | None = None,
    values: bool = False,
    tokenizer: object = None,
    runs: int | None = None,
) -> Iterator[Watched]:
    """See every attention call of ``model`` that runs in the block, in this thread.

    Args:
        model: any torch module, or something that has one as ``.model`` (what ``load`` returns, a
            pipeline); its ``.tokenizer`` is then used, too.
        layers: only these: numbers, names ("L16", "E3", "C0") or module paths.
        heads: only these: numbers, or names ("L16H5").
        values: keep v and the layer's own output as well, which ``.output()`` needs.
            ``seen.verify`` does without them.
        tokenizer: gives rows and columns their tokens, from the ids that the model reads.
        runs: how many runs to keep, the latest; None keeps all of them.

    Yields:
        The :class:`~clearhead.trace.watching.watched.Watched`, which fills while the block runs and
        can be used inside and after it.

    Raises:
        InputError: ``model`` is no torch model, is compiled or TorchScript, or uses an attention
            kernel that cannot be observed; ``layers`` or ``heads`` choose nothing that exists.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> states = torch.ones(1, 4, 6)
    >>> with watch(layer) as seen:
    ...     output, _ = layer(states, states, states)
    >>> [(layer.name, layer.heads, layer.queries, layer.keys) for layer in seen.layers]
    [('L0', 2, 4, 4)]
    >>> seen["L0H1"].row(3)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])

    The model's outputs are those of the unwatched run, bit for bit, and it is left as it was. If
    something fails in watching, the model goes on. Watches may be nested or overlap; a task or a
    thread is seen if it runs in a copy of this context. What was not seen is named in
    ``seen.missed`` and ``seen.coverage``.
    """
    module = _module_of(model)
    modules = modules_of(module)
    _refuse(module, modules)
    if tokenizer is None and not isinstance(model, nn.Module):
        tokenizer = getattr(model, "tokenizer", None)
    values = flag("values", values)
    check_tokenizer(tokenizer)
    keep_freed_memory()
    recorder = Recorder(
        module, LayerFilter(layers, heads), values, tokenizer, _checked(runs), modules
    )
    with ExitStack() as exits:
        exits.callback(recorder.close)
        _open_doors(recorder, exits)
        yield recorder.seen
    if recorder.fault is not None:
        raise recorder.fault


def _open_doors(recorder: Recorder, exits: ExitStack) -> None:
    """Open the doors for this context; each watch closes them for itself alone."""
    recorder.begin()
    if own_call not in OBSERVERS.watching:
        OBSERVERS.watching = (*OBSERVERS.watching, own_call)
    exits.callback(_close_own_door)
    add_observer(recorder.engine)
    exits.callback(remove_observer, recorder.engine)
    open_door()
    exits.callback(close_door)
    KERNELS.open()
    exits.callback(KERNELS.close)


def _close_own_door() -> None:
    """With the last watch of this context; a watch that is still open needs it."""
    if len(watchers()) <= 1:
        OBSERVERS.watching = tuple(known for known in OBSERVERS.watching if known is not own_call)


def _checked(runs: int | None) -> int | None:
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 1):
        raise InputError(
            f"runs counts the runs that are kept and must be 1 or more; got {shown(runs)}."
        )
    return runs


def _module_of(model: Any) -> nn.Module:
    module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
    if not isinstance(module, nn.Module):
        raise InputError(
            "watch wants a torch model (nn.Module), or something that has one as .model; got "
            f"{type(model).__name__}.",
            hint="watch(model), then call whatever runs the model inside the block.",
        )
    return module


def _is_compiled(module: nn.Module) -> bool:
    """By what a module holds itself: asking it for names that it does not have takes long."""
    compiled = module.__dict__.get("_compiled_call_impl") is not None
    return compiled or "_orig_mod" in module._modules or "_orig_mod" in module.__dict__


def _refuse(model: nn.Module, modules: list[tuple[str, nn.Module]]) -> None:
    """Refuse what cannot be watched before anything runs."""
    for path, module in modules:
        if _is_compiled(module):
            where = f" ({path})" if path else ""
            raise InputError(
                f"this model is compiled{where}: torch.compile hides the attention calls.",
                hint="watch the model as it was before compiling (compiled._orig_mod).",
            )
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(
                "this model is TorchScript, whose attention calls cannot be seen.",
                hint="watch the Python model that it was made from.",
            )
    config = getattr(model, "config", None)
    refuse_kernel(getattr(config, "_attn_implementation", None))
