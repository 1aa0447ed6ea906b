"""Loading a compiled kernel on first use; None where this machine cannot run it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from clearhead.kernels.threads import TorchThreads, torch_threads

Kernel = TypeVar("Kernel")


def load_kernel(compile_it: Callable[[TorchThreads], Kernel | None]) -> Kernel | None:
    """Return ``compile_it(torch's threads)``, or None where the kernel cannot run.

    That is: torch's threads are not OpenMP's, numba is missing or does not fit the NumPy beside it,
    or numba cannot compile the kernel for this processor. ``compile_it`` imports the kernel's
    module itself, because that imports numba, unless its machine code is kept.
    """
    threads = torch_threads()
    if threads is None:
        return None
    try:
        return compile_it(threads)
    except ImportError:
        return None
    except Exception as error:
        if _is_of_numba(error):
            return None
        raise


def _is_of_numba(error: Exception) -> bool:
    """True for numba's own errors; without them nobody needs to import it."""
    errors = sys.modules.get("numba.core.errors")
    return errors is not None and isinstance(error, errors.NumbaError)
