"""Step tables of one's own numbers.

==========  =======================================================================
``tables``  from keys and a query, or from the result of ``ch.attention_steps``
``file``    from a CSV file: ``clearhead steps --numbers FILE.csv``
==========  =======================================================================
"""
