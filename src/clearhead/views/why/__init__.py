"""Pictures of a prediction and its parts; the order in which to read them.

``text`` has the words and numbers of all of them, ``growth`` the bars of the layers; ``terminal``,
``svg``, ``html`` and ``tables`` (CSV) draw. ``shown`` is ``ch.why`` and what it returns.
"""
