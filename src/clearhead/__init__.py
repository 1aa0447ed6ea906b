"""clearhead: see, number by number, what any transformer attends to - at full speed.

    import clearhead as ch

    ch.attention(query, key, value, causal=True)

Everything public is a name of this module and loads on first use; ``dir(clearhead)`` lists it.
"""

import sys
from typing import TYPE_CHECKING

import clearhead.attention
import clearhead.studio  # noqa: F401 (see below)
from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.attention import masks as masks
    from clearhead.attention.cache import KVCache as KVCache
    from clearhead.attention.dot_product import attention as attention
    from clearhead.attention.selfish import selfish_attention as selfish_attention
    from clearhead.attention.steps import attention_steps as attention_steps
    from clearhead.checkpoints.load import Loaded as Loaded
    from clearhead.checkpoints.load import load as load
    from clearhead.checkpoints.save import save as save
    from clearhead.errors import ClearheadError as ClearheadError
    from clearhead.explain.interventions.ablate import ablate as ablate
    from clearhead.explain.interventions.patch import patch as patch
    from clearhead.generation.beam_search import beam_search as beam_search
    from clearhead.generation.generate import generate as generate
    from clearhead.generation.session import Session as Session
    from clearhead.layers.multi_head import MultiHeadAttention as MultiHeadAttention
    from clearhead.layers.torch_weights import from_torch as from_torch
    from clearhead.layers.torch_weights import to_torch as to_torch
    from clearhead.models.config import ModelConfig as ModelConfig
    from clearhead.models.decoder import Decoder as Decoder
    from clearhead.models.encoder import Encoder as Encoder
    from clearhead.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from clearhead.studio.studio import studio as studio
    from clearhead.trace.seen import Seen as Seen
    from clearhead.trace.trace_file import open_trace as open_trace
    from clearhead.trace.watching.watch import watch as watch
    from clearhead.training.run import train as train
    from clearhead.views.looking import diff as diff
    from clearhead.views.looking import look as look
    from clearhead.views.looking import steps as steps
    from clearhead.views.patched.shown import patch_map as patch_map
    from clearhead.views.roles.shown import roles as roles
    from clearhead.views.why.shown import why as why

__version__ = "0.1.0"

# Imports bind the folders attention/ and studio/ to names of functions: ch.attention(…).
# A folder binds its name only when it is first imported, which was just now, so this lasts.
delattr(sys.modules[__name__], "attention")
delattr(sys.modules[__name__], "studio")

# THE list of public names, each with its module. A test compares it with the imports above, which
# are for type checkers and editors.
_HOMES = {
    "ClearheadError": "clearhead.errors",
    "Decoder": "clearhead.models.decoder",
    "Encoder": "clearhead.models.encoder",
    "EncoderDecoder": "clearhead.models.encoder_decoder",
    "KVCache": "clearhead.attention.cache",
    "Loaded": "clearhead.checkpoints.load",
    "ModelConfig": "clearhead.models.config",
    "MultiHeadAttention": "clearhead.layers.multi_head",
    "Seen": "clearhead.trace.seen",
    "Session": "clearhead.generation.session",
    "ablate": "clearhead.explain.interventions.ablate",
    "attention": "clearhead.attention.dot_product",
    "attention_steps": "clearhead.attention.steps",
    "beam_search": "clearhead.generation.beam_search",
    "diff": "clearhead.views.looking",
    "from_torch": "clearhead.layers.torch_weights",
    "generate": "clearhead.generation.generate",
    "load": "clearhead.checkpoints.load",
    "look": "clearhead.views.looking",
    "masks": "clearhead.attention.masks",
    "open_trace": "clearhead.trace.trace_file",
    "patch": "clearhead.explain.interventions.patch",
    "patch_map": "clearhead.views.patched.shown",
    "roles": "clearhead.views.roles.shown",
    "save": "clearhead.checkpoints.save",
    "selfish_attention": "clearhead.attention.selfish",
    "steps": "clearhead.views.looking",
    "studio": "clearhead.studio.studio",
    "to_torch": "clearhead.layers.torch_weights",
    "train": "clearhead.training.run",
    "watch": "clearhead.trace.watching.watch",
    "why": "clearhead.views.why.shown",
}
__all__ = [*_HOMES, "__version__"]
__getattr__, __dir__ = lazy(__name__, _HOMES)
