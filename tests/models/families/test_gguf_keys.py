"""Every metadata key that llama.cpp's own package names is read, harmless, or refused by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import gguf
import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.gguf_keys import (
    NAMESPACES,
    RULES,
    TOKENIZER,
    completed_metadata,
    one_number,
    unread_metadata,
)

SIZES: dict[str, Any] = {
    "context_length": 13, "embedding_length": 12, "block_count": 2, "feed_forward_length": 17,
    "attention.head_count": 3, "attention.layer_norm_rms_epsilon": 1e-5,
    "attention.layer_norm_epsilon": 1e-5,
}  # fmt: skip


def metadata(architecture: str, **more: Any) -> dict[str, Any]:
    named = {f"{architecture}.{key}": value for key, value in (SIZES | more).items()}
    return {"general.architecture": architecture, **named}


def their_keys(group: Any = gguf.Keys) -> Iterator[str]:
    """Every key of the package, out of its nested classes."""
    for name, value in vars(group).items():
        if isinstance(value, str) and not name.startswith("__"):
            yield value
        elif isinstance(value, type):
            yield from their_keys(value)


def own_keys() -> list[str]:
    """Those that stand under the name of an architecture; ``dense`` is the number of a layer."""
    found = [key.removeprefix("{arch}.") for key in their_keys() if key.startswith("{arch}.")]
    return sorted({key.replace("{dense}", f"dense_{n}") for key in found for n in (2, 3)})


def test_the_walk_finds_the_keys() -> None:
    assert len(own_keys()) > 100
    assert {"context_length", "attention.indexer.top_k", "rope.scaling.factor"} <= set(own_keys())


@pytest.mark.parametrize("architecture", RULES)
def test_every_key_is_classified_once(architecture: str) -> None:
    rules = RULES[architecture]
    for key in [*own_keys(), "rope.scale_linear"]:
        places = sum(key in sort for sort in (rules.read, rules.harmless, rules.refused))
        assert places == 1, f"{architecture}.{key} is classified {places} times"
    known = {*rules.read, *rules.harmless, *rules.refused}
    assert known - set(own_keys()) == {"rope.scale_linear"}  # an older name, which is read as well


def test_other_keys_of_models_are_known() -> None:
    others = [key for key in their_keys() if not key.startswith("{arch}.")]
    of_other_files = ("clip.", "adapter.", "diffusion.", "xielu.")
    for key in others:
        if key.startswith("tokenizer."):
            named = key.replace("{name}", "tool_use")
            assert unread_metadata(metadata("llama") | {named: 1}) == (), key
        else:
            assert key.startswith((*NAMESPACES, *of_other_files)), key


def test_what_the_tokenizer_reads_is_read() -> None:
    """Every key that text/gguf/ asks for, and no other, is declared."""
    from clearhead.text.gguf import tokenizer, vocabulary

    source = "".join(inspect.getsource(module) for module in (tokenizer, vocabulary))
    asked = set(re.findall(r'(?:_get|_list|flag)\("(\w+)"', source))
    asked |= set(vocabulary.SPECIAL_KEYS.values()) | {"eot_token_id", "eom_token_id"}
    declared = {key.removeprefix("tokenizer.ggml.") for key in TOKENIZER.read}
    assert declared - {"tokenizer.chat_template"} == asked


@pytest.mark.parametrize("architecture", RULES)
def test_refused_keys_are_named(architecture: str) -> None:
    for key, rule in RULES[architecture].refused.items():
        for value in (7, 0.5, "x", [1, 2], True not in rule.harmless):
            if any(value == harmless for harmless in rule.harmless):
                continue
            with pytest.raises(CheckpointError, match=rf"the GGUF file: {architecture}\.{key} is "):
                completed_metadata(metadata(architecture, **{key: value}), architecture)
        for value in rule.harmless:
            completed_metadata(metadata(architecture, **{key: value}), architecture)


@pytest.mark.parametrize("architecture", RULES)
def test_what_nobody_knows_is_listed(architecture: str) -> None:
    more = {
        f"{architecture}.colour": 1, "tokenizer.ggml.colour": 2, "general.name": "x",
        "tokenizer.ggml.model": "gpt2", "clip.use_gelu": True, "mamba.context_length": 7,
    }  # fmt: skip
    wanted = (f"{architecture}.colour", "tokenizer.ggml.colour", "clip.use_gelu",
              "mamba.context_length")  # fmt: skip
    assert unread_metadata(metadata(architecture) | more) == wanted


def test_files_that_are_no_models() -> None:
    for kind in ("adapter", "imatrix", "mmproj"):
        with pytest.raises(CheckpointError, match=f"general.type is {kind}: only whole models"):
            completed_metadata(metadata("llama") | {"general.type": kind}, "llama")
    completed_metadata(metadata("llama") | {"general.type": "model"}, "llama")


def test_one_number_for_all_layers() -> None:
    assert one_number({"a": 3}, "a") == 3
    with pytest.raises(CheckpointError, match="a differs between layers, which is not known"):
        one_number({"a": [3, 5]}, "a")
