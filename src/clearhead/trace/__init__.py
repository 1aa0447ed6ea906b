"""The exact attention of a run: recorded while the model runs, looked at as rows, tiles and maps.

A *trace* is what ``watch`` keeps of a run: q, k and one log-sum-exp for each row, linear in tokens.
Any weight is computed again from it. The order in which to read the modules:

==============================================  ==================================================
``watching/``                                   observes attention calls and makes records of them
``record``, ``chunks``                          the record of one layer, and what calls add to it
``row_rules``, ``row_joins``                    its masks and biases as rules, linear in tokens
``spill``                                       storage in memory, beyond a limit on the disk
``seen``, ``head_name``, ``missed``             all records of a run; ``L16H5``; what is not there
``passage``, ``labels``, ``selection``          tokens as names of rows and columns; selecting them
``exact``                                       any block of one head, computed again
``head_view``, ``pooled_map``, ``top_key``      the views: rows, tiles, maps, the largest weights
``zoom/``                                       deep zoom: tiles of any level, small maps of heads
``words``                                       weights of subwords merged to weights of words
``cost``, ``workers``                           the cost of a view beforehand; threads for long ones
``proof``, ``proving/``                         the proof that the weights are the layer's own
``trace_file``, ``trace_check``                 a trace as one file, checked when it is opened
==============================================  ==================================================

Public: ``watch``, ``open_trace``, and the classes of what they return.
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
    from clearhead.trace.watching.watch import watch as watch
    from clearhead.trace.watching.watched import Watched as Watched
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
    "Watched": "clearhead.trace.watching.watched",
    "Word": "clearhead.trace.words",
    "WordWeights": "clearhead.trace.words",
    "open_trace": "clearhead.trace.trace_file",
    "passage_of": "clearhead.trace.passage",
    "passage_of_ids": "clearhead.trace.passage",
    "watch": "clearhead.trace.watching.watch",
    "words_of": "clearhead.trace.words",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
