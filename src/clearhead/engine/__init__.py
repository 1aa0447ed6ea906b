"""The CPU engine: quantised weights, a KV cache, and one compiled function that runs all layers.

Read the modules in this order:

================  =================================================================================
``compiled``      the compiled functions: kept machine code, or made by numba
``weights``       a model's matrices, quantised and packed for the kernels
``cache``         the KV cache in half precision
``engine``        a model's weights and the compiled step: shared by all its runners
``thread_tuner``  all threads or one: measures which is faster
``workspace``     the memory of a runner's steps, and the tokens of the next step
``observers``     how ``watch`` learns of the engine's attention
``seen_rows``     the rows of a watched run, until the observers get them
``runner``        ``EngineRunner``: one batch with its cache, one call for each step
``kernels/``      the compiled functions themselves
================  =================================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.engine.engine import Engine as Engine
    from clearhead.engine.engine import engine_runs_here as engine_runs_here
    from clearhead.engine.engine import engine_supports_config as engine_supports_config
    from clearhead.engine.runner import EngineRunner as EngineRunner
    from clearhead.engine.runner import engine_of as engine_of
    from clearhead.engine.runner import engine_supports as engine_supports

_HOMES = {
    "Engine": "clearhead.engine.engine",
    "EngineRunner": "clearhead.engine.runner",
    "engine_of": "clearhead.engine.runner",
    "engine_runs_here": "clearhead.engine.engine",
    "engine_supports": "clearhead.engine.runner",
    "engine_supports_config": "clearhead.engine.engine",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
