"""Interventions in a model that runs: ablation and patching; the order in which to read it.

``outputs`` is the one way to read and change what heads and layers put out; ``projection`` finds
W_O in any torch model, and ``places`` the heads and layers that a name means in a loaded one.
``ablate`` takes their outputs away, or single edges of attention (``edges``), or puts
``mean_outputs`` in their place. ``patch`` puts the outputs of another text there. ``changed_rows``
makes many such changes in one text, one in each row of a batch; ``every_head`` ablates each head.
``changes`` knows which changes are in force, for whoever explains the run.
"""
