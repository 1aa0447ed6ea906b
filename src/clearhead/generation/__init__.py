"""Generation: from logits to text, token by token.

Read the modules in this order:

==============================  ===================================================================
``runner``, ``torch_runner``    the protocol of a model with its KV cache; its form on torch
``runner_factory``              makes a runner: the CPU engine if it supports the model, else torch
``sampling``, ``penalties``     pure functions of logits: temperature, filters, penalties, the draw
``settings``                    every sampling setting, checked, and the order in which they apply
``token_rules``                 rules that forbid or force tokens
``file_settings``               the caller's settings first, then the model's files, then ours
``sound_logits``                NaN is refused
``prompt``, ``prompt_batch``    a text or token ids become the batch that decoding starts from
``row``, ``stop_strings``       one text of the batch: its tokens, its stream of text, its stops
``token_sampler``               logits of a batch become the next token of each row
``decoding_loop``               the loop: sample, emit an event, run the model
``event``, ``generate``         the public function and the events that it yields
``session``, ``session_runner``  keeps the KV cache from one call of ``generate`` to the next
``speculative_runner``          speculative decoding with drafts from the text itself
``beam_search``                 the texts with the highest scores
==============================  ===================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.generation.beam_search import Hypothesis as Hypothesis
    from clearhead.generation.event import Alternative as Alternative
    from clearhead.generation.event import Event as Event
    from clearhead.generation.runner import Runner as Runner
    from clearhead.generation.runner_factory import make_runner as make_runner
    from clearhead.generation.session import Session as Session
    from clearhead.generation.settings import Settings as Settings
    from clearhead.generation.torch_runner import TorchRunner as TorchRunner

# The functions ``generate`` and ``beam_search`` are public as clearhead.generate and
# clearhead.beam_search: here these names are the modules.
_HOMES = {
    "Alternative": "clearhead.generation.event",
    "Event": "clearhead.generation.event",
    "Hypothesis": "clearhead.generation.beam_search",
    "Runner": "clearhead.generation.runner",
    "Session": "clearhead.generation.session",
    "Settings": "clearhead.generation.settings",
    "TorchRunner": "clearhead.generation.torch_runner",
    "make_runner": "clearhead.generation.runner_factory",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
