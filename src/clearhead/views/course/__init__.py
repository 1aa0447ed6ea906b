"""The course: from one query to a Transformer, live; one description, two renderers.

================  ==================================================================================
``chapter``       what a chapter consists of: text, figure, code, exercise
``chapters/``     the chapters, one module each, as plain data; start here
``inline``        emphasis and code inside a text, as HTML
``real_numbers``  numbers of real models: ``data/`` (SmolLM2, measurements) and ``dates`` itself
``html``          ``course_page``: all chapters as one self-contained page
``markdown``      ``course_markdown``: the same as pages of the documentation
``assets/``       the browser's part: mathematics, fields, figures, exercises
``data/``         made by ``docs/course_numbers.py`` and ``benchmarks/recurrence.py``
================  ==================================================================================

The scripts, in the order in which they are joined: ``parts.js``, ``data.js`` and ``sampling.js`` of
``views/page/assets``; then ``mathematics.js``, ``fields.js`` (numbers that can be changed),
``tables.js``, ``transformer.js`` (runs ``dates``), ``figures_*.js``, ``exercise.js``,
``picture.js`` (a figure as SVG), ``course.js`` (links, progress, keys).
"""

from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.html import course_page
from clearhead.views.course.markdown import course_markdown

__all__ = ["CHAPTERS", "course_markdown", "course_page"]
