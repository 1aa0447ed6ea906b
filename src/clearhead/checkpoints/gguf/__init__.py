"""GGUF files: header, tensors, dequantising.

The order in which to read the modules:

===============  ===============================================================
``kinds``        the kinds of tensor data, with block lengths and bytes
``cursor``       reading the parts of a header, never beyond the end of the file
``header``       metadata and the list of tensors, checked
``dequantise``   from quantised blocks to float32
``unpack_rows``  the compiled functions that do the same
``quantised``    a matrix that stays as it is stored, for torch
``file``         ``GGUFFile``: the tensors of one file
``kernels/``     compiled functions for blocks
===============  ===============================================================
"""
