"""Batches: rows of token ids, always the same ones for the same number. The modules:

=============  ===============================================================
``batch``      rows of token ids, and the targets to predict
``passes``     endless passes through the data
``packed``     documents one after another, for language models
``pairs``      pairs of texts, for encoder-decoders
``chats``      chats, of which the answers are learned
``masked``     texts with masked tokens, for encoders
``sentences``  pairs of sentences, for embeddings
=============  ===============================================================

Its modules are imported by their own names; the folder itself exports nothing.
"""
