"""Compiled functions: what they are written with, how they are compiled, and what runs them.

=================  ===========================================================================
``operations``     operations that numba does not have, as LLVM's code
``vectors``        arithmetic on vectors of 16 numbers
``exponential``    eˣ of vectors
``memory``         vectors and numbers at an address, and counters that threads share
``compiling``      from a function to machine code, kept on disk
``threads``        torch's own threads run it
``object_file``    objects of compiled functions, linked into memory
``machine_code``   what numba compiled once, kept on disk and loaded without numba
``loading``        a kernel on first use, or None where this machine cannot run it
``scratch``        memory for one call, reused by the next
``plain_tensors``  checks that a tensor is plain numbers in memory
``freed_memory``   freed memory stays in the process
=================  ===========================================================================

``operations``, ``vectors``, ``exponential``, ``memory`` and ``compiling`` import numba; the others
do not. The kernels themselves are in ``attention/kernels`` and ``engine/kernels``.
"""
