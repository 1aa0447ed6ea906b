"""Texts as tokens in mapped files, made once for a run. The order in which to read the modules:

==============  ==============================================================
``survey``      one pass: the length of each document, and which are copies
``chunks``      documents in chunks that can be tokenised one by one
``encoder``     many texts to ids at once
``tokenising``  all texts to tokens, in parallel, in bounded memory
``file``        the token ids in a file that is mapped into memory
``data``        what is learned, what is held out, what is known of both
==============  ==============================================================

Its modules are imported by their own names; the folder itself exports nothing.
"""
