"""All logits after a text, so that a reader can sample from them at any temperature."""

from __future__ import annotations

from typing import Any

import torch

from clearhead.checkpoints.load import Loaded
from clearhead.explain.course.packed import packed
from clearhead.explain.course.tokens import tokenizer_of
from clearhead.explain.make_look import evaluating
from clearhead.explain.why.target import token_text

NAMED = 400  # likeliest tokens whose texts are kept


def next_token(loaded: Loaded, text: str) -> dict[str, Any]:
    """The logits of the whole vocabulary after a text, and the texts of the likeliest tokens."""
    ids = torch.tensor([tokenizer_of(loaded).encode(text)])
    with evaluating(loaded):
        logits = loaded.model(ids, last_only=True)[0, -1].float()
    likeliest = logits.topk(min(NAMED, len(logits))).indices.tolist()
    return {
        "text": text,
        "vocab": len(logits),
        "logits": packed(logits),
        "ids": likeliest,
        "tokens": [token_text(loaded, id) for id in likeliest],
    }
