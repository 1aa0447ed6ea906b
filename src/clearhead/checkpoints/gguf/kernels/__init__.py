"""Compiled functions for GGUF blocks, in the part of Python that numba compiles.

=============  ==============================================
``unpacking``  from blocks to float32, on torch's threads
=============  ==============================================

Nothing here is public. Importing a module needs numba.
"""
