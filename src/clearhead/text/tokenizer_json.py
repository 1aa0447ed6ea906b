"""A vocabulary of characters as ``tokenizer.json``: the file that `transformers` and others read.

It describes byte-pair encoding without a single merge, so every character stays a token of its own.
Our own file, ``vocabulary.json``, is what we read; this one lies beside it for everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.text.tokenizer import SPECIAL_NAMES, SpecialTokens


def tokenizer_json(
    ids: Mapping[str, int], specials: Mapping[str, int], *, add_bos: bool, add_eos: bool
) -> dict[str, Any]:
    """The content of ``tokenizer.json``.

    ``ids`` are those of the characters; ``specials`` those of ``<bos>``, ``<eos>``, ``<unk>`` …
    """
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(name, id) for name, id in specials.items()],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": _ends(specials, add_bos=add_bos, add_eos=add_eos),
        "decoder": {"type": "Fuse"},  # characters side by side, without spaces
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {**specials, **ids},
            "merges": [],
        },
    }


def settings_json(specials: SpecialTokens, names: Mapping[str, int]) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``. The characters ``<eos>`` in a text stay text."""
    by_id = {id: name for name, id in names.items()}
    found = {name: getattr(specials, name) for name in SPECIAL_NAMES}
    named = {f"{name}_token": by_id[id] for name, id in found.items() if id is not None}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        **named,
    }


def _added(name: str, id: int) -> dict[str, Any]:
    never = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": name, **never, "special": True}


def _ends(specials: Mapping[str, int], *, add_bos: bool, add_eos: bool) -> dict[str, Any] | None:
    """What stands before and after each text."""
    if not (add_bos or add_eos):
        return None
    text: list[dict[str, Any]] = [{"Sequence": {"id": "A", "type_id": 0}}]
    other: list[dict[str, Any]] = [{"Sequence": {"id": "B", "type_id": 0}}]
    before, after = [_special("<bos>")] * add_bos, [_special("<eos>")] * add_eos
    used = [name for name, is_used in (("<bos>", add_bos), ("<eos>", add_eos)) if is_used]
    return {
        "type": "TemplateProcessing",
        "single": [*before, *text, *after],
        "pair": [*before, *text, *after, *before, *other, *after],
        "special_tokens": {
            name: {"id": name, "ids": [specials[name]], "tokens": [name]} for name in used
        },
    }


def _special(name: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": 0}}
