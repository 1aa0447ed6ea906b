"""Safetensors files: header, tensors, shards, writing.

The order in which to read the modules:

==========  ===================================================================
``header``  the header, checked before the file is mapped
``file``    ``SafetensorsFile``: the tensors of one file; ``write_safetensors``
``shards``  several files joined by an index; ``open_safetensors``
==========  ===================================================================
"""
