"""Results that show themselves: what ``ch.look``, ``ch.steps`` and ``ch.diff`` return.

===============  =================================================================================
``base``         ``Shown``: print, notebook, html, svg, png, csv, json, save; the same for all
``look``         ``ShownLook``: a whole look, with methods that lead to all others
``pictures``     ``ShownHead``, ``ShownWord``, ``ShownGallery``
``steps``        ``ShownSteps``: the step table of one query
``predictions``  ``ShownPredictions``, ``ShownPrediction``, ``ShownLens``: what the model says next
``difference``   ``ShownDifference``: what changed between two looks
===============  =================================================================================

Each class is an insight of :mod:`clearhead.explain` (``.insight``) with all of its attributes.
Roles have theirs in :mod:`clearhead.views.roles.shown`.
"""

from clearhead.views.shown.base import Shown
from clearhead.views.shown.difference import ShownDifference
from clearhead.views.shown.look import ShownLook
from clearhead.views.shown.pictures import ShownGallery, ShownHead, ShownWord
from clearhead.views.shown.predictions import ShownLens, ShownPrediction, ShownPredictions
from clearhead.views.shown.steps import ShownSteps

__all__ = [
    "Shown",
    "ShownDifference",
    "ShownGallery",
    "ShownHead",
    "ShownLens",
    "ShownLook",
    "ShownPrediction",
    "ShownPredictions",
    "ShownSteps",
    "ShownWord",
]
