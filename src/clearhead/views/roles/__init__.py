"""Pictures of the roles of heads, in every format.

==============  ====================================================================
``shown``       ``ch.roles`` and its results ``ShownRoles``, ``ShownEvidence``
``text``        words and numbers, the same in every renderer
``terminal``    the table, the map of layers × heads, examples
``html``        the page; its style sheet is ``views/page/assets/roles.css``
``svg``         the picture
``tables``      CSV and JSON
==============  ====================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.views.roles.shown import ShownEvidence as ShownEvidence
    from clearhead.views.roles.shown import ShownRoles as ShownRoles
    from clearhead.views.roles.shown import roles as roles

_HOMES = {
    "ShownEvidence": "clearhead.views.roles.shown",
    "ShownRoles": "clearhead.views.roles.shown",
    "roles": "clearhead.views.roles.shown",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
