"""Interventions in a loaded model: ablation and patching; the order in which to read it.

``places`` finds the heads and layers that a name means. ``ablate`` takes their outputs away, or
single edges of attention (``edges``), or puts ``mean_outputs`` in their place. ``patch`` puts the
outputs of another text there. ``every_head`` ablates each head of a short text, one in each row of
a batch.
"""
