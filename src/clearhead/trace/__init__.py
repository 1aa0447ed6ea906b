"""Watching attention calls, and looking at what was seen: exact rows, tiles and maps.

==================================================  ==============================================
``watch`` and what it is made of                    sees calls, keeps q, k and log-sum-exp
``record``, ``row_rules``                           what is kept of a layer, linear in tokens
``seen``, ``head_name``, ``labels``, ``passage``    the whole run; names of heads, rows and columns
``exact``                                           any block of a head, computed again
``head_view``, ``pooled_map``, ``words``, ``cost``  what is looked at, and what looking takes
``workers``                                         long views shared out among threads
``proof``                                           that it is what the layer computed
``spill``, ``trace_file``, ``trace_check``          where it is kept, now and later
==================================================  ==============================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.trace.cost import Cost as Cost
    from clearhead.trace.cost import Limit as Limit
    from clearhead.trace.head_view import HeadView as HeadView
    from clearhead.trace.passage import Passage as Passage
    from clearhead.trace.passage import passage_of as passage_of
    from clearhead.trace.passage import passage_of_ids as passage_of_ids
    from clearhead.trace.pooled_map import PooledMap as PooledMap
    from clearhead.trace.proof import LayerProof as LayerProof
    from clearhead.trace.proof import Proof as Proof
    from clearhead.trace.record import LayerFacts as LayerFacts
    from clearhead.trace.record import LayerRecord as LayerRecord
    from clearhead.trace.seen import Seen as Seen
    from clearhead.trace.top_key import TopKey as TopKey
    from clearhead.trace.trace_file import open_trace as open_trace
    from clearhead.trace.watch import watch as watch
    from clearhead.trace.words import Word as Word
    from clearhead.trace.words import WordWeights as WordWeights
    from clearhead.trace.words import words_of as words_of

_HOMES = {
    "Cost": "clearhead.trace.cost",
    "HeadView": "clearhead.trace.head_view",
    "LayerFacts": "clearhead.trace.record",
    "LayerProof": "clearhead.trace.proof",
    "LayerRecord": "clearhead.trace.record",
    "Limit": "clearhead.trace.cost",
    "Passage": "clearhead.trace.passage",
    "PooledMap": "clearhead.trace.pooled_map",
    "Proof": "clearhead.trace.proof",
    "Seen": "clearhead.trace.seen",
    "TopKey": "clearhead.trace.top_key",
    "Word": "clearhead.trace.words",
    "WordWeights": "clearhead.trace.words",
    "open_trace": "clearhead.trace.trace_file",
    "passage_of": "clearhead.trace.passage",
    "passage_of_ids": "clearhead.trace.passage",
    "watch": "clearhead.trace.watch",
    "words_of": "clearhead.trace.words",
}
__all__ = list(_HOMES)
__getattr__ = lazy(__name__, _HOMES)
