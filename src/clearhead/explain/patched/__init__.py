"""Which heads and positions carry an answer: two texts, patched into each other.

The order in which to read it: ``pair`` aligns the two texts token by token. ``make_patch_map``
patches every layer at every word, and every head; ``patch_map`` is what was measured.
"""
