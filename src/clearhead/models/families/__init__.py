"""Families: how public checkpoints describe and name what our one stack computes.

A family file holds presets and a name map, nothing else (docs/families.md shows how to add one).
"""

from clearhead.models.families.family import Family, Source, family_named, family_of

__all__ = ["Family", "Source", "family_named", "family_of"]
