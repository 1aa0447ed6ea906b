"""Numbers of real models that the course shows, as plain data; the order in which to read them:

===============  ===================================================================================
``packed``       vectors of float32 as base64 of their deflated bytes
``tokens``       the tokenizer of the model
``next_token``   all logits after a text, for sampling from them
``pronoun``      who *they* is: q and k of one head, and all heads, for a sentence and its swap
``prediction``   why a token is predicted: weight, part and ablation of each head
``evidence``     what heads specialise in: the best of ``ch.roles``, with examples
``token_way``    the way of one token through all layers: states, q, k, v, heads, feed-forward
``weights``      the weights of a small encoder-decoder, for a page that runs it itself
``numbers``      all of these for one model: ``course_numbers``; start here
===============  ===================================================================================
"""

from clearhead.explain.course.numbers import course_numbers

__all__ = ["course_numbers"]
