"""The studio: a local server behind a live page. The order in which to read the modules:

==============  ====================================================================================
``studio``      ``ch.studio``: start a server, show it in a browser or a notebook; start here
``server``      the routes, and the server that runs them
``guard``       who may come in: Host, Origin, the token; the headers of every answer
``page``        the page's HTML, its scripts and style sheet; ``assets/`` holds its own
``client``      one connected page: requests in, results out
``line``        its connection, which ends even if the page has stopped reading
``messages``    what a page may ask for, checked
``requests``    from a request to a job of the right model
``worker``      one thread for each model: one job at a time, newest wins, pages take turns
``shelf``       the models and traces that a page may choose from
``reading``     a text that changes a little at a time: only the changed part runs
``looking``     the look at a text, sent piece by piece
``dropped``     a trace that is dropped on a page
``writing``     writing token by token, each with its distribution
``predicting``  a prediction that a page asks about
``explaining``  why a token is predicted, and what is predicted without some heads or edges
``mapping``     long texts: tiles of one head on demand, small maps of all heads
``comparing``   the difference of two looks
``roles``       the roles of heads, where they are known
``saving``      what is shown, as a file
==============  ====================================================================================
"""
