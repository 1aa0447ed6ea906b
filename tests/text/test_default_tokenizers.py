"""The default models' tokenizers against `transformers` loading the same files."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

from clearhead.text import SubwordTokenizer, Tokenizer, load_tokenizer, tokenizer_from_gguf
from tests.shared.varied_strings import varied_strings

pytestmark = pytest.mark.download
TEXTS = varied_strings(1500)
Files = Callable[[str], Path]


def gguf_file(folder: Path) -> Path:
    return next(folder.rglob("*.gguf"))


@pytest.fixture(scope="module")
def smollm2(default_model_files: Files) -> SubwordTokenizer:
    from gguf import GGUFReader

    fields = GGUFReader(gguf_file(default_model_files("smollm2"))).fields
    return tokenizer_from_gguf({key: field.contents() for key, field in fields.items()})


@pytest.fixture(scope="module")
def smollm2_reference(default_model_files: Files) -> Any:
    path = gguf_file(default_model_files("smollm2"))
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def differing(ours: Tokenizer, theirs: Any) -> list[str]:
    texts = []
    for text in TEXTS:
        encoding = theirs(text, return_offsets_mapping=True)
        tokens = ours.tokens(text)
        spans = [(t.start, t.end) for t in tokens if t.start < t.end]
        same_spans = spans == [(a, b) for a, b in encoding["offset_mapping"] if a < b]
        if [token.id for token in tokens] != encoding["input_ids"] or not same_spans:
            texts.append(text)
    return texts


def test_minilm_is_identical(default_model_files: Files) -> None:
    folder = next(default_model_files("minilm").rglob("tokenizer.json")).parent
    assert differing(load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)) == []


def test_smollm2_is_identical_with_its_own_rule(
    smollm2: SubwordTokenizer, smollm2_reference: Any
) -> None:
    """`transformers` does not read the file's rule ``smollm``; given it, nothing differs.

    llama.cpp, which the rule's name comes from, cuts digits apart before anything else.
    """
    backend = smollm2_reference.backend_tokenizer
    as_read = backend.pre_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    try:
        assert differing(smollm2, smollm2_reference) == []
    finally:
        backend.pre_tokenizer = as_read


def test_smollm2_as_transformers_reads_it_differs_at_numbers_only(
    smollm2: SubwordTokenizer, smollm2_reference: Any
) -> None:
    numbers = pre_tokenizers.Digits(individual_digits=True)
    for text in differing(smollm2, smollm2_reference):
        parts = [part for part, _ in numbers.pre_tokenize_str(text)]
        joints = pairwise(parts)
        assert any(left[-1].isspace() and not right[0].isalpha() for left, right in joints), text


def test_smollm2_known_ids(smollm2: SubwordTokenizer) -> None:
    assert smollm2.encode("The capital of France is") == [504, 3575, 282, 4649, 314]
    assert smollm2.encode("Hello world! 123") == [19556, 905, 17, 216, 33, 34, 35]
    assert smollm2.encode("  multiple   spaces") == [216, 2701, 256, 5600]
    assert smollm2.tokens("price:  100")[2].text == "  "
    assert (smollm2.size, smollm2.specials.bos, smollm2.specials.eos) == (49152, 1, 2)


def test_smollm2_texts_come_back_and_are_covered(smollm2: SubwordTokenizer) -> None:
    for text in TEXTS:
        tokens = smollm2.tokens(text)
        ids = [token.id for token in tokens]
        stream = smollm2.stream(skip_special=False)
        assert smollm2.decode(ids, skip_special=False) == text
        assert "".join([stream.push(id) for id in ids]) + stream.flush() == text
        assert {p for t in tokens for p in range(t.start, t.end)} == set(range(len(text)))


def test_smollm2_chats(smollm2: SubwordTokenizer, smollm2_reference: Any) -> None:
    from clearhead.text import ChatTemplate

    messages = [{"role": "user", "content": "Who are they?"}]
    text = ChatTemplate.of(smollm2).render(messages)
    expected = smollm2_reference.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    assert text == expected
    assert re.findall(r"<\|im_start\|>(\w+)", text) == ["system", "user", "assistant"]
