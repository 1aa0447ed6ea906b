"""From a trace to insight: plain data without any output format in it.

The order in which to read the modules:

==========================================  ======================================================
``pictures``                                the results: pictures of a head, of a word, of all heads
``marks``, ``mark_weights``                 the places of an axis; the weights between them
``finite``                                  numbers that can be shown: finite ones
``layer_group``, ``run_layers``             layers that share their axes; all layers of one run
``salience``, ``choice``                    the rule that chooses the word and head to show first
``sources``, ``notes``, ``make_pictures``   the parts of a picture, and the pictures themselves
``generated``                               generated tokens with their sources
``look``, ``make_look``                     the look at one text: everything above on request
``long_map``, ``zoom/``                     one head over a long text: in cells; every weight
``step_table``, ``worked_examples``         every step of one query; the textbook's examples
``own_numbers/``                            the same for one's own numbers, in Python or in a file
``head_outputs``, ``head_steps``            the same for a real head, through W_O
``difference``                              two looks compared
``interventions/``                          ablation and patching of a loaded model
``why/``                                    a prediction as an exact sum of its parts
``predictions``, ``lens``                   what the model says next, and layer by layer
``roles/``                                  the role of each head on a corpus, with evidence
``course/``                                 numbers of real models that the course shows
==========================================  ======================================================

Public are the classes of the results and the functions that make them. ``make_look`` and
``long_map`` are imported from their modules, which have the same names.
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.explain.difference import Difference as Difference
    from clearhead.explain.difference import make_difference as make_difference
    from clearhead.explain.generated import GeneratedToken as GeneratedToken
    from clearhead.explain.look import Look as Look
    from clearhead.explain.pictures import Aids as Aids
    from clearhead.explain.pictures import Gallery as Gallery
    from clearhead.explain.pictures import HeadPicture as HeadPicture
    from clearhead.explain.pictures import Mark as Mark
    from clearhead.explain.pictures import Source as Source
    from clearhead.explain.pictures import WordPicture as WordPicture
    from clearhead.explain.step_table import StepTable as StepTable
    from clearhead.explain.worked_examples import worked_example as worked_example

_HOMES = {
    "Aids": "clearhead.explain.pictures",
    "Difference": "clearhead.explain.difference",
    "Gallery": "clearhead.explain.pictures",
    "GeneratedToken": "clearhead.explain.generated",
    "HeadPicture": "clearhead.explain.pictures",
    "Look": "clearhead.explain.look",
    "Mark": "clearhead.explain.pictures",
    "Source": "clearhead.explain.pictures",
    "StepTable": "clearhead.explain.step_table",
    "WordPicture": "clearhead.explain.pictures",
    "make_difference": "clearhead.explain.difference",
    "worked_example": "clearhead.explain.worked_examples",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
