"""The command line: one small module for each command. The order in which to read them:

====================================================  ==========================================
``start``, ``main``                                   finds the command, shows errors
``printing``, ``interrupts``                          the one way to the terminal; Ctrl-C
``help_texts``, ``sampling_options``,                 options and texts that commands share,
``looking_options``, ``checking``                     checked before anything is loaded
``loading``                                           lines and bars for those who wait
``learn``                                             the command that writes the course
``studio``                                            the command that serves the live page
``look``, ``why``, ``steps``, ``map``,                commands that show attention, and why
``heads``, ``diff``                                   a model predicts what it predicts
``generate``, ``chat``, ``translate``                 commands that run models
``models``                                            the command that lists and fetches models
``train``                                             the command that trains
``output/``                                           generated tokens, a line each; a run's view
====================================================  ==========================================

Heavy imports (torch, numba, rich) are inside functions, so that ``clearhead --help`` is quick. The
folder has no public names: everything that a command does, a function of :mod:`clearhead` does.
"""
