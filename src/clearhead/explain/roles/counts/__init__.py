"""Counts of weights, kept and read again; the order in which to read them.

``tally`` holds all counts as integers. ``tally_file`` writes them to a file and checks every number
that it reads. ``count_cache`` lets an interrupted run continue where it stopped; ``effect_cache``
keeps what ablations changed.
"""
