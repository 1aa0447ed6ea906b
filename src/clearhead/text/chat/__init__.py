"""Chat templates: from messages to the one text that a chat model was trained on.

The order in which to read the modules:

============  =====================================================
``template``  ``ChatTemplate``: a model's template and rendering it
``sandbox``   Jinja's sandbox, in which templates run
``budget``    the limit on what one rendering may compute
============  =====================================================
"""
