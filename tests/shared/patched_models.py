"""A small decoder with letters for tokens, and a patch map that is made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.text.characters import CharacterTokenizer
from clearhead.views.patched.shown import ShownPatchMap
from tests.shared.explained_models import random_decoder

TEXT, DONOR = "ab cd ef gh", "ab cx ef gh"
TOKENS = ("a", "b")


@cache
def letters() -> Loaded:
    tokenizer = CharacterTokenizer("abcdefghx ")
    return replace(random_decoder(vocab=tokenizer.size), tokenizer=tokenizer, name="letters")


@cache
def shown_patch_map() -> ShownPatchMap:
    return ch.patch_map(letters(), TEXT, DONOR, *TOKENS)
