"""How byte-level BPE families split a text before merging, by the names in GGUF files.

A name stands for a list of regular expressions. Each splits what the ones before it left: every
match becomes a part of its own, and so does the text between matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clearhead.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CASELESS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
LINES = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PUNCTUATION = r"[\p{P}\$\+<=>\^~\|]+"


@dataclass(frozen=True)
class TextSplit:
    """The splits of one family, and what else its original tokenizer does.

    ``whole_words``: a part that is in the vocabulary is taken as it is, before any merge.
    ``compose``: the text is brought to Unicode's composed form (NFC) first.
    ``add_bos``: texts begin with BOS unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    compose: bool = False
    add_bos: bool = False


_GPT2 = TextSplit((GPT2,))
_DIGITS = TextSplit((r"\p{N}", GPT2))
_LLAMA3 = TextSplit((CASELESS + r"\p{N}{1,3}" + LINES,), whole_words=True, add_bos=True)
_QWEN2 = TextSplit((CASELESS + r"\p{N}" + LINES,), compose=True)

TEXT_SPLITS: dict[str, TextSplit] = {
    "default": TextSplit((PUNCTUATION, GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    **dict.fromkeys(("gpt-2", "gpt2", "mpt", "olmo", "jais", "phi-2"), _GPT2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _DIGITS),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), _LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen"), _QWEN2),
}


def text_split(name: str) -> TextSplit:
    """The split of that name, or an error that lists the known ones."""
    if name not in TEXT_SPLITS:
        raise CheckpointError(
            f"the GGUF file cuts its texts by the rule {name!r} (tokenizer.ggml.pre), which is "
            f"unknown here; known: {', '.join(TEXT_SPLITS)}.",
            hint="use the model's hub folder, whose tokenizer.json says how it cuts.",
        )
    return TEXT_SPLITS[name]


def pre_tokenizer(split: TextSplit) -> PreTokenizer:
    """The split as a part of a `tokenizers` tokenizer, bytes spelled in GPT-2's alphabet."""
    from tokenizers import Regex, pre_tokenizers

    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in split.patterns]
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*cuts, spell])
