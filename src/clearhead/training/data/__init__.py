"""Training data: from texts to batches. The order in which to read the modules:

====================  ==========================================================================
``given``             the arguments of ``train``, checked
``source``            paths, texts, pairs or chats, as a Python program gives them
``standard_input``    standard input in place of a file
``text_stream``       a file as a stream of text, compressed or not
``json_lines``        one document in each line
``corpus``            documents from files and folders
``split``             a part of them, held out for validation
``text_pairs``        pairs of texts from files
``chats``             chats, and which of their tokens are answers
``vocabulary``        the tokenizer of a run
``language``          the texts of a language model: learned, held out, told of
``tokens``            texts as tokens in mapped files
``batches``           rows of token ids, for each kind of model
``dates``             the training data of the built-in model ``dates``
====================  ==========================================================================

Its modules are imported by their own names; the folder itself exports nothing.
"""
