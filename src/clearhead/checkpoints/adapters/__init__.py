"""LoRA adapters: small matrices beside a model that stays as it is, in PEFT's files.

==================  ==========================================================================
``adapter``         what an adapter is; adding it to a model's weights
``base``            the model that an adapter is for: its files, its checksum, finding it
``config_file``     adapter_config.json: every field read, harmless or refused
``tensor_names``    from our matrices to PEFT's names, and back
``adapter_folder``  a folder with an adapter, read and written
``merge``           a model folder with the adapter added to its weights
==================  ==========================================================================
"""
