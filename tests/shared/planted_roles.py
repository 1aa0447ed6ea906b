"""Roles of a model with planted heads, found once, for tests of their pictures."""

from __future__ import annotations

from functools import cache

from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.planted import planted_model
from clearhead.views.roles.shown import ShownRoles, roles


@cache
def shown() -> ShownRoles:
    sentences = list(made_sentences(113))
    return roles(planted_model(sentences), sentences, interventions=1)
