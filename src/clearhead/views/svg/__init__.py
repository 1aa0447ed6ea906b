"""Pictures as SVG, for papers and slides.

===============  ====================================================================
``render``       ``svg``: any insight; start here
``parts``        ``Drawing`` (rectangles, curves, texts), colours, widths of words
``head``         the attention map of one head
``word``         where one word looks: arcs and bars
``gallery``      all heads, each a small map
``steps``        the step table of one query
``predictions``  what the model says next; the lens
``difference``   what changed between two looks
===============  ====================================================================

Import the function from its module: ``from clearhead.views.svg.render import svg``.
"""
