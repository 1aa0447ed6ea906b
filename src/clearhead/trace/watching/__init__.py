"""Watching a model while it runs: attention calls are observed, records are kept.

The order in which to read the modules:

=================================  ==============================================================
``watch``                          the context manager: opens the doors, and closes them again
``observed_call``                  one attention call in one form; the watchers of this thread
``doors/``                         the places at which calls are observed
``attention_mode``                 the torch function mode that leads to the doors of torch
``module_stack``                   the modules that run right now; which of them were observed
``recorder``, ``watched``          makes records of observed calls; the result that ``watch`` yields
``layer_names``, ``layer_filter``  names such as ``L16``; the layers and heads that are kept
``mask_rules``                     masks and biases turned into rules, linear in tokens
``log_sum_exp``                    the log-sum-exp of calls whose kernel did not return it
``stitching``                      a call that continues a record: cached steps, beams, new runs
``input_ids``                      the token ids that the model read: labels of rows and columns
``sample_check``                   a few rows compared with the weights that the model computed
=================================  ==============================================================

Public: ``watch`` and ``Watched``, through :mod:`clearhead.trace`.
"""
