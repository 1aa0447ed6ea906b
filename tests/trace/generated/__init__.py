"""Attentions that a generator builds, each with weights of its own to compare with.

Read in this order: ``spec`` (the dimensions), ``masks``, ``layouts``, ``softmaxes``,
``projections``, ``caches``, ``entry``, ``attention``, ``model``, ``reference`` (the weights, plainly,
in float64), ``runs`` (how a model is called), ``shown`` (what was seen against the reference),
``falsified`` (records made wrong on purpose), ``trial`` (all checks of one attention), ``smallest``
(the cause of a failure), ``known`` (failures that are known).

``python -m tests.trace.generated --count 10000 --seed 0`` tries many and shows a table.
"""
