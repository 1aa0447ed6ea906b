"""The engine's compiled functions, in the part of Python that numba compiles.

Read the modules in this order:

======================  ===========================================================================
``structures``          C structures and constants that Python and the kernels share
``parts``               functions that are compiled separately and call each other by name
``threads``             work stealing: how threads divide the units of a phase
``products``            integer dot products, in the instructions of this processor
``numbers``             activation functions, quantisation of vectors
``bit_moves``           where the bits of a block of 256 go
``layouts``             tiles: how the blocks of 16 rows lie in memory, for each kind
``interleaving``        blocks into tiles, and a row of a tile back into blocks
``weight_packing``      float32 matrices become quantised tiles
``tile_groups``         32 columns of a tile: whole numbers, scales and minima, for each kind
``matrix``              the product of a tile and quantised vectors, for each kind
``hidden_states``       embedding, normalisation, quantisation of a token's hidden state
``projection``          matrix products with bias, residual or activation
``rotate_and_store``    rotary positions; keys and values into the cache
``attention``           attention over the cache, chunk by chunk
``parallel_loops``      each of the above for all tokens, divided among threads
``step``                all layers: tokens in, logits out
======================  ===========================================================================

Nothing here is public. Importing a module needs numba.
"""
