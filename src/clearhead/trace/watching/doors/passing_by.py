"""How a step of a known layer passes the functions that stand before torch's kernels.

Each of them takes about 3 µs of a step, and many times that between two layers, where the processor
has to fetch its code again. They stand at the dispatch key ``BackendSelect``, which is there for
operations without a tensor: it finds the device that they are to run on. Where that key is left out
and the CPU is named instead, every operation on the CPU does what it does otherwise.
"""

from __future__ import annotations

import torch

_SELECT, _CPU = torch._C.DispatchKey.BackendSelect, torch._C.DispatchKey.CPU
_exclude = torch._C._dispatch_tls_set_dispatch_key_excluded
_include = torch._C._dispatch_tls_set_dispatch_key_included
_is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
_is_included = torch._C._dispatch_tls_is_dispatch_key_included
_dispatch_modes = torch._C._len_torch_dispatch_stack


def may_pass() -> bool:
    """True if nobody else hears of operations in this thread, or has changed the keys."""
    return not (_dispatch_modes() or _is_excluded(_SELECT) or _is_included(_CPU))


def pass_by_hooks(on: bool) -> None:
    """Operations of this thread go to the CPU's kernels directly, or as usual again."""
    _exclude(_SELECT, on)
    _include(_CPU, on)
