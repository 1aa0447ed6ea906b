"""What a run trains: a model, its batches, its validation. The order in which to read the modules:

==============  ==============================================================
``task``        a model, its tokenizer, its batches and its validation set
``rows``        how many tokens a row has, how many batches a validation
``start``       the model that a run trains further
``parameters``  which parameters change: all, some, or those of adapters
``chats``       the task of a chat model: the answers of chats
``encoders``    the tasks of encoders: masked tokens, pairs of sentences
==============  ==============================================================

Its modules are imported by their own names; the folder itself exports nothing.
"""
