"""What the proof (``proof.py``) is made of.

==============  ====================================================================================
``probes``      projections of values and outputs, taken while the model runs
``recomputed``  rows of all heads, computed again from the record
``tolerance``   how near both must come
==============  ====================================================================================

Nothing here is public.
"""
