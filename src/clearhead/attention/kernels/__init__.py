"""The attention kernels, in the part of Python that numba compiles.

==================  ====================================================================
``decode``          a few queries over a long cache; used by ``attention/decode.py``
``tiles``           tiles of queries over whole texts; used by ``attention/tiles.py``
``tile_gradients``  the gradient of ``tiles``; used by ``attention/tile_gradients.py``
``tile_product``    the products of small matrices that both are made of
``tile_copies``     copies between tensors and a thread's own memory
==================  ====================================================================

Importing one imports numba, so whoever uses one imports it on first use.
"""
