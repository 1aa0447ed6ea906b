"""The interactive page: one self-contained HTML file that opens no connection.

===============  ===================================================================================
``html``         ``html_page`` and ``html_fragment``: any insight; start here
``data``         the data of a page: words, weights, masks, notes
``groups``       layers by their axes, and their weights
``strongest``    the strongest weights of each row, so that a file stays linear in tokens
``axes``         the words of rows and columns, and masks as runs of visible columns
``vectors``      q, k and v, from which the page computes step tables
``predictions``  the likeliest tokens of each position, for sampling in the page; the lens
``steps``        the step table of every query
``difference``   two maps side by side, with what changed
``static``       header, buttons and script of pages that are drawn once
``files``        scripts and style sheets out of ``assets/``
``zoom/``        the page of a long text's map: the whole map first, then down to single weights
``blocks``       numbers as base64 of deflated bytes
``assets/``      the browser's part: scripts and style sheets
===============  ===================================================================================

The scripts, in the order in which they are joined: ``parts.js`` (elements, colours), ``data.js``
(the reader of the blocks), ``sentence.js``, ``bars.js``, ``sampling.js`` (temperature, top-k,
top-p, min-p), ``predictions.js``, ``lens.js``, ``heatmap.js``, ``saving.js`` (PNG and SVG),
``gallery.js``, ``steps.js``, ``written.js`` (one component each), ``view.js`` (state, toolbar,
keys). Pages that are drawn once have ``picture.js`` (what is on the screen as SVG and PNG) and
``static.js`` (buttons, address).

To change the colours of every page, light and dark, edit ``assets/colours.css``: it holds all
colours as CSS custom properties. ``view.css`` (looks) and ``roles.css`` (roles) only use them.
"""

from clearhead.views.page.html import html_fragment, html_page

__all__ = ["html_fragment", "html_page"]
