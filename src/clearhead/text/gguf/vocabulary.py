"""The vocabulary in the metadata of a GGUF file, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from clearhead.arguments import shown
from clearhead.errors import CheckpointError
from clearhead.text.subwords.file import LARGEST_VOCABULARY

Value = TypeVar("Value")

PREFIX = "tokenizer.ggml."
LONGEST_TOKEN = 1024  # the longest in use are runs of 128 spaces or signs
_KINDS = {int: "iu", float: "iuf"}  # NumPy's letters for dtypes that hold nothing else
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# Older files misspell the separator; the format keeps the misspelling.
SPECIAL_KEYS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "pad": "padding_token_id",
    "unk": "unknown_token_id",
    "mask": "mask_token_id",
    "cls": "cls_token_id",
    "sep": "seperator_token_id",
}


@dataclass(frozen=True)
class GgufVocabulary:
    """The checked entries below ``tokenizer.ggml.`` of a GGUF file's metadata."""

    metadata: Mapping[str, Any]

    @cached_property
    def kind(self) -> str:
        """``gpt2`` (byte-level BPE), ``llama`` (SentencePiece), ``bert`` or ``t5``."""
        return self._get("model", str)

    @cached_property
    def pre(self) -> str:
        """The name of the rule that splits texts before merging."""
        return self._get("pre", str, "default")

    @cached_property
    def tokens(self) -> list[str]:
        """The vocabulary; a token's id is its place."""
        tokens = self._list("tokens", str)
        if not 0 < len(tokens) < LARGEST_VOCABULARY:
            raise CheckpointError(f"the GGUF vocabulary has {len(tokens):,} entries.")
        longest = max(tokens, key=len)
        if len(longest) > LONGEST_TOKEN:
            raise CheckpointError(
                f"the GGUF vocabulary has an entry of {len(longest):,} characters; at most "
                f"{LONGEST_TOKEN} go."
            )
        if len(set(tokens)) < len(tokens):
            piece, times = Counter(tokens).most_common(1)[0]
            raise CheckpointError(f"the GGUF vocabulary has the entry {piece!r} {times} times.")
        return tokens

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token."""
        return {token: id for id, token in enumerate(self.tokens)}

    @cached_property
    def types(self) -> list[int]:
        """What each token is (normal, control …); all normal when the file does not say."""
        if PREFIX + "token_type" not in self.metadata:
            return [NORMAL] * len(self.tokens)
        return self._as_many_as_tokens("token_type", self._list("token_type", int))

    @cached_property
    def scores(self) -> list[float]:
        """How good each token is; the higher, the earlier it is merged."""
        return self._as_many_as_tokens("scores", [float(s) for s in self._list("scores", float)])

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs of tokens that are merged, first ones first."""
        pairs = [tuple(merge.split(" ")) for merge in self._list("merges", str)]
        for pair in pairs:
            absent = [piece for piece in (*pair, "".join(pair)) if piece not in self.ids]
            if len(pair) != 2 or absent:
                raise CheckpointError(
                    f"the GGUF merge {' '.join(pair)!r} should be two entries of the vocabulary "
                    f"that make a third; not there: {absent or 'a space between two'}."
                )
        return [(left, right) for left, right in pairs]

    @cached_property
    def special_ids(self) -> dict[str, int]:
        """The ids that the file names: bos, eos, pad …"""
        found = {}
        for name, key in SPECIAL_KEYS.items():
            if PREFIX + key in self.metadata:
                id = self._get(key, int)
                if not 0 <= id < len(self.tokens):
                    raise CheckpointError(
                        f"{PREFIX}{key} is {id}, outside the vocabulary of {len(self.tokens)}."
                    )
                found[name] = id
        return found

    def of_type(self, *types: int) -> list[str]:
        """The tokens of these types."""
        return [token for token, kind in zip(self.tokens, self.types, strict=True) if kind in types]

    def flag(self, key: str, default: bool) -> bool:
        """A yes or no of the file, such as ``add_bos_token``."""
        return self._get(key, bool, default)

    def charsmap(self) -> bytes:
        """SentencePiece's compiled character map; empty where there is none."""
        if PREFIX + "precompiled_charsmap" not in self.metadata:
            return b""
        value = self.metadata[PREFIX + "precompiled_charsmap"]
        if isinstance(value, bytes):
            return value
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            return value.astype(np.uint8).tobytes()
        return bytes(number & 0xFF for number in self._list("precompiled_charsmap", int))

    def _as_many_as_tokens(self, key: str, values: list[Any]) -> list[Any]:
        if len(values) != len(self.tokens):
            raise CheckpointError(
                f"{PREFIX}{key} should have one entry for each of the {len(self.tokens)} tokens, "
                f"and has {len(values)}."
            )
        return values

    def _get(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        value = self.metadata.get(PREFIX + key, default)
        if value is None:
            raise CheckpointError(
                f"the GGUF metadata has no {PREFIX}{key}.",
                hint="the file was converted without its vocabulary.",
            )
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CheckpointError(
                f"{PREFIX}{key} should be a {kind.__name__}, and is {shown(value)}."
            )
        return value

    def _list(self, key: str, kind: type) -> list[Any]:
        """A list of the file; only those that are asked for become Python's own numbers."""
        array = self.metadata.get(PREFIX + key)
        if isinstance(array, np.ndarray) and array.dtype.kind in _KINDS.get(kind, ""):
            numbers: list[Any] = array.tolist()
            return numbers
        given = array.tolist() if isinstance(array, np.ndarray) else self._get(key, list)
        wanted = (int, float) if kind is float else kind
        for place, value in enumerate(given):
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise CheckpointError(
                    f"{PREFIX}{key} should be a list of {kind.__name__}; entry {place} is "
                    f"{shown(value)}."
                )
        return given
