"""The door at unfused attention: a model computes product, softmax and product by itself.

    scores  = query @ key.transpose(-1, -2)      torch.matmul, bmm, baddbmm, einsum …
    scores  = scores * scale + mask              and ÷, −, masked_fill, where, tanh, view, dropout …
    weights = softmax(scores)
    output  = weights @ value

While a module runs whose code may do that, a dispatch mode hears of every operation that torch
really carries out: below autograd and autocast, whatever name it was called by. Every step on the
way from the first product to the second is followed (``steps``), and so is the output
until its heads are joined, which tells heads from sequences (``joined_heads``). Nothing is
computed anew for the model. A step that has no place in the formula makes a trail *opaque*: then
the model's own weights are kept as they came. Weights that the model mixes over heads, subtracts
from one another or changes in another way before the second product are kept as they were before.

=====================  =======================================================================
``following``          when operations are followed
``mode``               hears of every operation, and knows the trails of tensors
``trail``              how a tensor came about
``steps``              each followed operation, in a table
``products``           query · key, weights · value, products over heads
``arithmetic``         scales, temperatures, caps, numbers that are added
``masking``            what hides scores
``softmaxes``          scores become weights
``dropout``            weights are dropped
``by_hand``            products that are a multiplication and a sum: named
``moves``              axes are reshaped, permuted, put together
``operands``           what these have in common
``pending_calls``      calls that wait until their heads are joined
``joined_heads``       heads are told from sequences
``scored_call``        queries, keys, masks and weights in one form
=====================  =======================================================================

Nothing here is public.
"""
