"""Training data: from texts to batches. The order in which to read the modules:

====================  ==========================================================================
``given``             the arguments of ``train``, checked
``source``            paths, texts or pairs, as a Python program gives them
``corpus``            documents from files and folders
``split``             a part of them, held out for validation
``text_pairs``        pairs of texts from files
``vocabulary``        the tokenizer of a run
``batch``             rows of token ids, and the targets to predict
``packed_batches``    batches of documents, for language models
``pair_batches``      batches of pairs, for encoder-decoders
``dates``             the training data of the built-in model ``dates``
====================  ==========================================================================

Its modules are imported by their own names; the folder itself exports nothing.
"""
