"""What stands for a whole look where only one picture, or one table of numbers, has room."""

from __future__ import annotations

from clearhead.explain.look import Look


def one_picture(insight: object) -> object:
    """What is drawn of a whole look: where the chosen word looks, or the alignment."""
    if not isinstance(insight, Look):
        return insight
    if any(layer.kind == "cross" for layer in insight.layers):
        return insight.alignment()
    return insight.word(insight.chosen_word, insight.chosen_head)


def one_head(insight: object) -> object:
    """What is told in numbers of a whole look: the chosen head."""
    return insight.head() if isinstance(insight, Look) else insight
