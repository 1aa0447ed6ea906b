"""Why a model predicts what it predicts: a logit as an exact sum; the order in which to read it.

``prediction_run`` runs the model; ``sublayers`` keeps what each sublayer read and wrote at one
position. ``target`` turns a token, or two, into a ``direction``, which ``splitting`` follows back:
every head's part for every source. ``make_why`` puts the ``parts`` together; ``effects`` ablates
the heads in real runs, whose answers ``readout`` reads. ``only_watched`` says what is known of a
model that was not loaded. ``score`` takes a score of attention apart in the same way.
"""
