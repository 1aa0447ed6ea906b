"""Text to tokens and back: every token knows the characters it came from.

The modules import `tokenizers` and jinja2 only when a tokenizer or a template is used.
"""

from __future__ import annotations

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.chat import ChatTemplate
from clearhead.text.folder import load_tokenizer
from clearhead.text.gguf_tokenizer import tokenizer_from_gguf
from clearhead.text.stream_decoder import StreamDecoder
from clearhead.text.subword_training import train_bpe, train_unigram, train_wordpiece
from clearhead.text.subwords import SubwordTokenizer
from clearhead.text.token import Token
from clearhead.text.tokenizer import SpecialTokens, Tokenizer
from clearhead.text.words import WordTokenizer

__all__ = [
    "CharacterTokenizer",
    "ChatTemplate",
    "SpecialTokens",
    "StreamDecoder",
    "SubwordTokenizer",
    "Token",
    "Tokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "tokenizer_from_gguf",
    "train_bpe",
    "train_unigram",
    "train_wordpiece",
]
