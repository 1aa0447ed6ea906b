"""Text to tokens and back: every token knows the characters it came from.

The modules import ``tokenizers`` and jinja2 only when a tokenizer or a template is used.

The order in which to read the modules:

=========================  =======================================================================
``token``                  one token: its id, its text and its span of characters
``tokenizer``              the interface of every tokenizer; its special tokens
``vocabulary``             tokenizers with a plain list of pieces, and their file
``tokenizer_json``         a vocabulary of characters as the file that other programs read
``characters``, ``words``  the two of them: one token per character, or per word
``subwords``               BPE, WordPiece and Unigram by the ``tokenizers`` package; training them
``gguf``                   the tokenizer that a GGUF file describes
``spelling``               how vocabularies spell bytes and spaces, made readable
``stream_decoder``         decoding one id at a time
``folder``                 the tokenizer in a folder, of whichever kind
``chat``                   chat templates: from messages to one text
=========================  =======================================================================
"""

from __future__ import annotations

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.chat.template import ChatTemplate
from clearhead.text.folder import load_tokenizer
from clearhead.text.gguf.tokenizer import tokenizer_from_gguf
from clearhead.text.stream_decoder import StreamDecoder
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.text.subwords.training import train_bpe, train_unigram, train_wordpiece
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
