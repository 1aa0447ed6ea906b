"""Pictures of a patch map; the order in which to read them.

``text`` has the words and numbers of all of them; ``terminal``, ``svg``, ``html`` and ``tables``
(CSV) draw. ``shown`` is ``ch.patch_map`` and what it returns.
"""
