"""Families: how public checkpoints describe and name what our one stack computes.

A family file holds the rules of its fields and a map of names, nothing else (docs/families.md shows
how to add one).

The order in which to read the modules:

==============================  ==================================================================
``family``                      ``Family`` and ``Source``, and finding the family of a config.json
``field_rules``                 each field is read, harmless or refused; the rest is unread
``common_fields``               the fields that all families share
``field_values``                values of fields turned into ours
``llama``, ``gemma``, ``gpt2``  decoders
``bert``, ``distilbert``        encoders
``t5``, ``bart``                encoder-decoders
``rope``                        rotary settings in config.json files, old and new
``clearhead``                   our own format: every config under our own names
``gguf``                        GGUF files: config and names from their metadata
``gguf_keys``                   the rules of their metadata keys
==============================  ==================================================================
"""

from clearhead.models.families.family import Family, Source, family_named, family_of

__all__ = ["Family", "Source", "family_named", "family_of"]
