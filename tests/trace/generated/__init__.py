"""Attentions that a generator builds, each with weights of its own to compare with.

Read in this order:

``spec``                             the dimensions, and one choice in each
``masks``, ``layouts``, ``softmaxes``, ``projections``, ``caches``, ``entry``, ``attention``
                                     the parts of an attention layer, as models write them
``model``, ``runs``                  a model of such layers, and how it is called
``reference``                        its weights, plainly, in float64
``shown``, ``falsified``, ``trial``  what a watch shows of it; records made wrong on purpose;
                                     all checks of one attention
``smallest``, ``known``              the cause of a failure; failures that are known

``python -m tests.trace.generated --count 10000 --seed 0`` tries many and shows a table.
"""
