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

from clearhead.arguments import flag
from clearhead.attention.observers import OBSERVERS
from clearhead.errors import InputError
from clearhead.kernels.freed_memory import keep_freed_memory
from clearhead.trace.passage import check_tokenizer
from clearhead.trace.watching.attention_mode import AttentionMode
from clearhead.trace.watching.doors.own import own_call
from clearhead.trace.watching.doors.transformers import close_door, open_door, refuse_kernel
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.observed_call import ACTIVE
from clearhead.trace.watching.recorder import Recorder
from clearhead.trace.watching.watched import Watched


@contextmanager
def watch(
    model: Any,
    *,
    layers: int | str | Iterable[int | str] | None = None,
    heads: int | str | Iterable[int | str] | None = None,
    values: bool = False,
    tokenizer: object = None,
) -> Iterator[Watched]:
    """See every attention call of ``model`` that runs in the block, in this thread.

    Args:
        model: any torch module, or something that has one as ``.model`` (what ``load`` returns, a
            pipeline); its ``.tokenizer`` is then used, too.
        layers: only these: numbers, names ("L16", "E3", "C0") or module paths.
        heads: only these: numbers, or names ("L16H5").
        values: keep v and the layer's own output as well, which ``seen.verify`` and
            ``.output()`` need for their last step.
        tokenizer: gives rows and columns their tokens, from the ids that the model reads.

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

    The model's outputs are those of the unwatched run, bit for bit, and it is left as it was. (One
    exception: ``nn.TransformerEncoder`` in eval mode without gradients runs as one fused operation
    that cannot be observed. Watched, it takes its ordinary path: equal but for rounding, and with
    numbers instead of zeros at padding.) Watches may be nested; other threads are not seen. What
    was not seen is named in ``seen.missed`` and ``seen.coverage``.
    """
    module = _module_of(model)
    _refuse(module)
    if tokenizer is None and not isinstance(model, nn.Module):
        tokenizer = getattr(model, "tokenizer", None)
    values = flag("values", values)
    check_tokenizer(tokenizer)
    keep_freed_memory()
    recorder = Recorder(module, LayerFilter(layers, heads), values, tokenizer)
    with ExitStack() as exits:
        exits.callback(recorder.close)
        _enter_thread(recorder, exits)
        yield recorder.seen


def _enter_thread(recorder: Recorder, exits: ExitStack) -> None:
    """Open the doors of this thread, and close them in the opposite order."""
    watchers, observers = ACTIVE.watchers, OBSERVERS.watching
    exits.callback(setattr, ACTIVE, "watchers", watchers)
    exits.callback(setattr, OBSERVERS, "watching", observers)
    ACTIVE.watchers = (*watchers, recorder)
    open_door()
    exits.callback(close_door)
    if not watchers:
        OBSERVERS.watching = (*observers, own_call)
        ACTIVE.mode = AttentionMode()
        exits.callback(setattr, ACTIVE, "mode", None)


def _module_of(model: Any) -> nn.Module:
    module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
    if not isinstance(module, nn.Module):
        raise InputError(
            "watch wants a torch model (nn.Module), or something that has one as .model; got "
            f"{type(model).__name__}.",
            hint="watch(model), then call whatever runs the model inside the block.",
        )
    return module


def _refuse(model: nn.Module) -> None:
    """Refuse what cannot be watched before anything runs."""
    for path, module in model.named_modules():
        if getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod"):
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
