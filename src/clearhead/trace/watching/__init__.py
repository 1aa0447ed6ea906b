"""Watching a model while it runs: attention calls are observed, records are kept.

The order in which to read the modules:

=================================  ==============================================================
``watch``                          the context manager: opens the doors, and closes them again
``observed_call``                  one attention call in one form
``watchers``                       who is notified in this context, without disturbing the model
``doors/``                         the places at which calls are observed
``axis_digits``                    where the axes of a product go when it is reshaped and permuted
``module_stack``, ``code_names``   the modules that run right now; what their code may call
``hooks/``                         how a watch hears that a module runs, and when it need not
``coverage``                       what attention ran, and which of it was kept
``waiting/``                       calls and steps wait, and are read and recorded many at a time
``recorder``, ``watched``          hears of observed calls; the result that ``watch`` yields
``new_rows``, ``record_writer``    what is kept of a call; writes it into records
``layer_names``, ``layer_filter``  names such as ``L16``; the layers and heads that are kept
``mask_rules``, ``bias_rules``     masks and biases turned into rules, linear in tokens
``log_sum_exp``                    the log-sum-exp of calls whose kernel did not return it
``stitching``, ``runs``            a call that continues a record: cached steps, beams; new runs
``input_ids``                      the token ids that the model read: labels of rows and columns
``sample_check``                   a few rows compared with the weights that the model computed
=================================  ==============================================================

Public: ``watch`` and ``Watched``, through :mod:`clearhead.trace`.
"""
