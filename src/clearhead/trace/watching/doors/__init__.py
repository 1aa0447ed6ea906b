"""The doors: the places at which ``watch`` observes attention calls.

A *door* is a function through which attention calls pass. While a model is watched, the door runs
the call exactly as it would run otherwise, describes it as an
:class:`~clearhead.trace.watching.observed_call.ObservedCall` and notifies the watchers of the
thread. There are four:

=====================================  =======================================================
``own``                                ``clearhead.attention``
``sdpa``                               ``torch.nn.functional.scaled_dot_product_attention``
``transformers``                       the attention interface of ``transformers``
``unfused`` (with ``unfused_steps``)   matmul, softmax, matmul, written in the model's own code
=====================================  =======================================================

Nothing here is public.
"""
