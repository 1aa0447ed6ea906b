"""Subword tokenizers: BPE, WordPiece and Unigram.

The order in which to read the modules:

==============  ====================================================================================
``tokenizer``   ``SubwordTokenizer``: a tokenizer of the ``tokenizers`` package behind our interface
``file``        checks of a tokenizer.json before it is parsed; settings files
``training``    training new vocabularies on texts
``rust_guard``  errors and panics of the Rust package, turned into ours
==============  ====================================================================================
"""
