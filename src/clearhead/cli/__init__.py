"""The command line: one small module for each command. The order in which to read them:

====================================================  ==========================================
``start``, ``main``                                   finds the command, shows errors
``printing``, ``interrupts``                          the one way to the terminal; Ctrl-C
``help_texts``, ``sampling_options``,                 options and texts that commands share
``looking_options``
``loading``, ``preparing``                            lines and bars for those who wait
``look``, ``why``, ``steps``, ``map``,                commands that show attention, and why
``heads``, ``diff``                                   a model predicts what it predicts
``generate``, ``token_lines``, ``chat``,              commands that run models; generated tokens,
``translate``                                         a line each
``models``                                            the command that lists and fetches models
``train``, ``train_view``                             the command that trains, and its progress bar
====================================================  ==========================================

Heavy imports (torch, numba, rich) are inside functions, so that ``clearhead --help`` is quick. The
folder has no public names: everything that a command does, a function of :mod:`clearhead` does.
"""
