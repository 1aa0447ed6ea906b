"""GGUF metadata made of small tokenizers trained here, as a converter would write it."""

from __future__ import annotations

import json
from typing import Any

from clearhead.text import SubwordTokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
SENTENCES = [
    "the kids were scared of the lions, so they left right away",
    "attention is all you need; the query looks at every key",
    "students opened their books 12 times in 2021",
    "def attention(query, key, value):\n    return softmax(query @ key.T) @ value\n",
    "ein Löwe für die Kinder, größer als der andere",
    "注意力 模型 你好 世界, привет мир",
] * 3


def model_of(tokenizer: SubwordTokenizer) -> dict[str, Any]:
    """The model part of a tokenizer's own JSON."""
    model: dict[str, Any] = json.loads(tokenizer.backend.to_str())["model"]
    return model


def byte_level_metadata(trained: SubwordTokenizer, pre: str = "gpt-2") -> dict[str, Any]:
    """What a GGUF file says about a byte-level BPE vocabulary."""
    model = model_of(trained)
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.token_type": [CONTROL] * 3 + [NORMAL] * (len(pieces) - 3),
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
    }


def sentencepiece_metadata() -> dict[str, Any]:
    """A SentencePiece BPE vocabulary with scores and bytes, as Llama 2 has one."""
    letters = sorted({letter for text in SENTENCES[:5] for letter in text if letter.isascii()})
    words = ["▁the", "the", "th", "he", "▁t", "▁k", "id", "ids", "▁kids", "li", "on", "lion",
             "▁lions", "▁▁", "▁▁▁▁", "at", "ten", "tion", "attention", "▁a", "er", "re", "▁l",
             "ions", "kids", "lions", "▁s", "sc", "ar", "ed", "ared", "▁at", "n", "t", "ti",
             "io", "ion", "te", "en", "att", "atten"]  # fmt: skip
    singles = ["▁", *(letter for letter in letters if letter not in " \n")]
    pieces = list(dict.fromkeys(singles + words))
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *byte_pieces, *words, *[p for p in pieces if p not in words]]
    count = len(tokens) - 259
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * 259 + [-float(place) for place in range(count)],
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * count,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def wordpiece_metadata(trained: SubwordTokenizer) -> dict[str, Any]:
    """A BERT vocabulary: GGUF marks the beginnings of words instead of their rest."""
    vocabulary = model_of(trained)["vocab"]
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [_phantom(piece) for piece in pieces],
        "tokenizer.ggml.token_type": [CONTROL] * 5 + [NORMAL] * (len(pieces) - 5),
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.cls_token_id": 2,
        "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.mask_token_id": 4,
    }


def unigram_metadata(trained: SubwordTokenizer) -> dict[str, Any]:
    """A T5 vocabulary with its scores."""
    scored = model_of(trained)["vocab"]
    return {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": [piece for piece, _ in scored],
        "tokenizer.ggml.scores": [score for _, score in scored],
        "tokenizer.ggml.token_type": [CONTROL] * 3 + [UNKNOWN] + [NORMAL] * (len(scored) - 4),
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.remove_extra_whitespaces": False,
    }


def _phantom(piece: str) -> str:
    if piece.startswith("[") and piece.endswith("]"):
        return piece
    return piece[2:] if piece.startswith("##") else f"▁{piece}"
