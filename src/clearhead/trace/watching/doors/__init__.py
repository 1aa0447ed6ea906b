"""The doors: the places at which ``watch`` observes attention calls.

A *door* is a place through which attention calls pass. While a model is watched, the call runs
exactly as it would run otherwise. The door then describes it as an
:class:`~clearhead.trace.watching.observed_call.ObservedCall` and notifies the watchers of the
context. There are eight, and one that only counts:

=======================================  =====================================================
``own``                                  ``clearhead.attention``
``engine``                               our CPU engine: its kernels write down what they computed
``transformers``                         the attention interface of ``transformers``
``kernels`` (with ``sdpa``)              torch's fused kernels, in the dispatcher
``flex``                                 torch's flex_attention, not compiled
``fast_path``                            torch's layers that run as one operation
``windows``                              Longformer's attention, and that of LED's encoder
``unfused`` (a folder)                   matmul, softmax, matmul, written in the model's own code
``happened``                             counts what ran, so that what was missed can be named
``passing_by``                           how a step of a known layer passes the kernels' functions
=======================================  =====================================================

Nothing here is public.
"""
