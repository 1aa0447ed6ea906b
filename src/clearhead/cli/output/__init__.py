"""Output of commands that takes more than a few lines to print.

===============  ==================================================================
``preparing``    the CPU engine is made ready: a line that says how far it is
``token_lines``  generated tokens, a line each: ``generate --show``
``train_view``   a training run: a bar with the loss, samples, the curve at the end
===============  ==================================================================
"""
