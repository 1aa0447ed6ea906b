"""Pictures in the terminal, as ``rich`` renderables.

===============  ====================================================================
``render``       ``show`` and ``plain_text``: any insight; start here
``parts``        bars, shades, colours, words cut to size
``look``         a whole look, from a word to all heads
``word``         where one word looks: the sentence and bars
``heatmap``      the attention map of one head
``gallery``      all heads: the grid of saliences, small maps
``steps``        the step table of one query
``predictions``  what the model says next; the lens
``difference``   what changed between two looks
===============  ====================================================================
"""

from clearhead.views.terminal.render import plain_text, show

__all__ = ["plain_text", "show"]
