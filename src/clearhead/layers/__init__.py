"""Modules made of the functions in ``attention/``: states in, states out."""
