"""Pictures of insight: one description, several renderers with the same numbers.

==============  ====================================================================================
``looking``     ``ch.look``, ``ch.steps``, ``ch.diff``: from a model and a text to a result
``aids``        their reading aids, checked
``shown/``      the results: they print, show themselves in notebooks, and write files
``formats``     the file formats: which function makes which file
``numbers``     numbers and vectors as text, the same in every renderer
``terminal/``   with ``rich``, at any width, with or without colour
``svg/``        pictures for papers; ``png`` draws the same as pixels
``page/``       one self-contained HTML file, interactive
``notebook``    the page in a frame, for notebooks
``tables``      the numbers as CSV and JSON
``roles/``      ``ch.roles``: all of these for the roles of heads
``course/``     ``clearhead learn``: the course as one live page, and as Markdown
``escape``      the one place where text becomes part of HTML, SVG or a script
==============  ====================================================================================

Each renderer has one function for any insight: ``terminal.render.show``, ``svg.render.svg``,
``page.html.html_page``, ``png.png``, ``tables.csv_text`` and ``tables.json_text``. Colours of pages
are in ``page/assets/colours.css``, of SVG and PNG in ``svg/parts.py``, of the terminal in
``terminal/parts.py``.
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.views.looking import diff as diff
    from clearhead.views.looking import look as look
    from clearhead.views.looking import steps as steps
    from clearhead.views.roles.shown import ShownEvidence as ShownEvidence
    from clearhead.views.roles.shown import ShownRoles as ShownRoles
    from clearhead.views.shown.base import Shown as Shown
    from clearhead.views.shown.difference import ShownDifference as ShownDifference
    from clearhead.views.shown.look import ShownLook as ShownLook
    from clearhead.views.shown.pictures import ShownGallery as ShownGallery
    from clearhead.views.shown.pictures import ShownHead as ShownHead
    from clearhead.views.shown.pictures import ShownWord as ShownWord
    from clearhead.views.shown.steps import ShownSteps as ShownSteps

_HOMES = {
    "Shown": "clearhead.views.shown.base",
    "ShownDifference": "clearhead.views.shown.difference",
    "ShownEvidence": "clearhead.views.roles.shown",
    "ShownGallery": "clearhead.views.shown.pictures",
    "ShownHead": "clearhead.views.shown.pictures",
    "ShownLook": "clearhead.views.shown.look",
    "ShownRoles": "clearhead.views.roles.shown",
    "ShownSteps": "clearhead.views.shown.steps",
    "ShownWord": "clearhead.views.shown.pictures",
    "diff": "clearhead.views.looking",
    "look": "clearhead.views.looking",
    "steps": "clearhead.views.looking",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
