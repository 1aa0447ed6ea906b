"""Checks of a ``tokenizer.json`` before the Rust package parses it; its settings files."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.arguments import shown
from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json
from clearhead.files.text_file import read_text
from clearhead.text.tokenizer import SPECIAL_NAMES

LARGEST_VOCABULARY = 2**22  # the largest in use are below 2**19; saving costs 4 bytes for each gap


@dataclass(frozen=True)
class SubwordSettings:
    """Settings from ``tokenizer_config.json`` and its older relatives."""

    names: dict[str, str]
    chat_template: str | None


def read_settings(folder: Path) -> SubwordSettings:
    """The special tokens' names and the chat template, from whichever files are there."""
    names: dict[str, str] = {}
    template = None
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / file).exists():
            found = settings_of(read_json(folder / file), where=str(folder / file))
            names |= found.names
            template = found.chat_template or template
    if (folder / "chat_template.jinja").exists():
        template = read_text(folder / "chat_template.jinja")
    return SubwordSettings(names, template)


def settings_of(content: dict[str, Any], *, where: str) -> SubwordSettings:
    """The special tokens' names and the chat template, from the content of a settings file."""
    return SubwordSettings(_names(content, where=where), _template(content.get("chat_template")))


def check_subword_file(content: dict[str, Any], *, where: str) -> None:
    """Refuse contents that `tokenizers` would panic on or silently misread."""
    model = content.get("model")
    if not isinstance(model, dict):
        raise CheckpointError(
            f"{where}: 'model' should describe BPE, WordPiece or Unigram, and is missing.",
            hint="is this really a tokenizer.json of the tokenizers package?",
        )
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):
        _check_scored(vocabulary, where)
    elif isinstance(vocabulary, dict):
        check_ids(vocabulary, where=where)
    else:
        raise CheckpointError(f"{where}: 'model.vocab' should be an object or a list.")
    _check_normalizers(content.get("normalizer"), where)
    unknown = model.get("unk_token")
    if unknown is not None and not isinstance(unknown, str):
        raise CheckpointError(f"{where}: unk_token should be a text, and is {shown(unknown)}.")
    if model.get("type") == "WordPiece" and unknown not in vocabulary:
        raise CheckpointError(
            f"{where}: the unknown token {shown(unknown)} is not in the vocabulary."
        )


def check_charsmap(raw: bytes, *, where: str) -> None:
    """Refuse a SentencePiece character map that is cut off: Rust would panic on it.

    It is the length of a trie in bytes (32 bits, little-endian), the trie, and UTF-8 text.
    """
    length = int.from_bytes(raw[:4], "little")
    try:
        raw[4 + length :].decode("utf-8")
    except UnicodeDecodeError:
        length = -1
    if len(raw) < 4 or length % 4 or not 0 < length <= len(raw) - 4:
        raise CheckpointError(f"{where}: the character map (precompiled_charsmap) is broken.")


def check_ids(vocabulary: dict[str, Any], *, where: str) -> None:
    """Refuse ids that are no small whole numbers, and ids given twice."""
    for piece, id in vocabulary.items():
        if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id < LARGEST_VOCABULARY:
            raise CheckpointError(
                f"{where}: the id of {piece!r} should be a whole number below "
                f"{LARGEST_VOCABULARY:,}, and is {shown(id)}."
            )
    if len(set(vocabulary.values())) < len(vocabulary):
        id, times = Counter(vocabulary.values()).most_common(1)[0]
        raise CheckpointError(f"{where}: the id {id} is given to {times} pieces of the vocabulary.")


def check_added(content: dict[str, Any], id_of: Callable[[str], int | None], *, where: str) -> None:
    """Refuse a file whose added tokens got other ids than it says (it has gaps before them)."""
    for token in content.get("added_tokens") or []:
        found = id_of(token["content"])
        if found != token["id"]:
            raise CheckpointError(
                f"{where}: the added token {token['content']!r} should have the id {token['id']}, "
                f"and the vocabulary before it makes that {found}."
            )


def _check_normalizers(normalizer: Any, where: str) -> None:
    if not isinstance(normalizer, dict):
        return
    inner = normalizer.get("normalizers")
    for step in inner if isinstance(inner, list) else []:
        _check_normalizers(step, where)
    if normalizer.get("type") == "Precompiled":
        try:
            raw = base64.b64decode(normalizer["precompiled_charsmap"], validate=True)
        except (KeyError, TypeError, ValueError):
            raw = b""
        check_charsmap(raw, where=where)


def _check_scored(vocabulary: list[Any], where: str) -> None:
    for entry in vocabulary:
        good = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)
        if not good or not isinstance(entry[1], int | float):
            raise CheckpointError(
                f"{where}: a Unigram vocabulary is a list of [piece, score]; {shown(entry)} came."
            )
    if len(vocabulary) > LARGEST_VOCABULARY:
        raise CheckpointError(f"{where}: {len(vocabulary):,} pieces are too many.")


def _names(content: dict[str, Any], *, where: str) -> dict[str, str]:
    names = {}
    for name in SPECIAL_NAMES:
        value = content.get(f"{name}_token")
        value = value.get("content") if isinstance(value, dict) else value
        if value is None:
            continue
        if not isinstance(value, str):
            raise CheckpointError(f"{where}: {name}_token should be a text, and is {shown(value)}.")
        names[name] = value
    return names


def _template(value: Any) -> str | None:
    """The template itself; where a file has several by name, the one called default."""
    if isinstance(value, list):
        named = (
            e.get("template") for e in value if isinstance(e, dict) and e.get("name") == "default"
        )
        value = next(named, None)
    return value if isinstance(value, str) else None
