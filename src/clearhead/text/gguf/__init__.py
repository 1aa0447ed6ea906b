"""Tokenizers from the metadata of GGUF files.

The order in which to read the modules:

==============  ================================================================
``vocabulary``  the metadata below ``tokenizer.ggml.``, checked
``splits``      how byte-level BPE families split a text, by name
``tokenizer``   ``tokenizer_from_gguf``: one builder for each kind of vocabulary
==============  ================================================================
"""
