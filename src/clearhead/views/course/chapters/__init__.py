"""The chapters of the course, each in a module of its own, as plain data; in their order:

``one_query``, ``batch``, ``positions``, ``matrices``, ``step_table`` (these three share the numbers
of ``action``), ``mask``, ``many_heads``, ``crossing``, ``blocks``, ``sampling``, ``cache``,
``recurrence``, ``evidence``, ``pronoun``, ``prediction``, ``token_way``.
"""

from clearhead.views.course.chapter import Chapter
from clearhead.views.course.chapters import (
    batch,
    blocks,
    cache,
    crossing,
    evidence,
    many_heads,
    mask,
    matrices,
    one_query,
    positions,
    prediction,
    pronoun,
    recurrence,
    sampling,
    step_table,
    token_way,
)

CHAPTERS: tuple[Chapter, ...] = tuple(
    module.CHAPTER
    for module in (
        one_query, batch, positions, matrices, step_table, mask, many_heads, crossing, blocks,
        sampling, cache, recurrence, evidence, pronoun, prediction, token_way,
    )
)  # fmt: skip

__all__ = ["CHAPTERS"]
