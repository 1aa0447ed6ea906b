"""Chat templates: from messages to the one text that a chat model was trained on.

A template is a stranger's program. Everything it does has a price, which is paid from a budget
before it is done; what has no price is refused. The order in which to read the modules:

=============  =====================================================
``template``   ``ChatTemplate``: a model's template and rendering it
``budget``     the limit on what one rendering may compute
``weights``    what a value costs to go through
``operators``  comparisons, arithmetic and text, paid for
``methods``    the methods of texts, lists and dictionaries
``filters``    the filters and tests
``rewriting``  how a template is made to ask for all of this
``sandbox``    Jinja's sandbox, in which templates run
=============  =====================================================
"""
