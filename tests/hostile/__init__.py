"""Hostile and broken input: mutants of every format that clearhead reads, and the oracle.

==============  ==========================================================================
``mutant``      one mutant: a specimen's files after one to three changes, from its number
``kinds/``      structure-aware changes: bytes, JSON, safetensors, GGUF, lines, templates
``formats/``    the formats: specimens, and a use of what was read
``worker``      a forked process with limits, in which mutants are tried
``outcome``     the oracle: loaded, refused, or a failure
``exhibit``     a failure made small and kept as a file, which is tried again by the tests
``__main__``    ``python -m tests.hostile --mutants 1000000``
==============  ==========================================================================
"""
