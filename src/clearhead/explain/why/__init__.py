"""Why a model predicts what it predicts: a logit as an exact sum; the order in which to read it.

``prediction_run`` runs the model; ``sublayers`` keeps what each sublayer read and wrote at one
position. ``target`` turns a token, or two, into a ``direction``, which is followed back through the
norms. ``make_why`` multiplies: every head's part for every source. ``effects`` ablates the heads in
real runs. ``parts`` is the result.
"""
