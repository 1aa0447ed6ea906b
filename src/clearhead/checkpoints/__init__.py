"""Files to models: safetensors, GGUF, transformers objects, and the store of models.

Names load on first use: the store alone must not cost the import of torch.

The order in which to read the modules:

=======================  =================================================================
``load``                 ``load``: a model with its tokenizer, from anywhere
``save``                 ``save``: a model folder that ``load`` and transformers read
``weights``              from the tensors of a file to the parameters of a model, and back
``from_transformers``    models and tokenizers of the transformers package, without copies
``description``          errors of the files that describe a model
``generation_defaults``  how a model's files want texts to be generated
``generation_fields``    every known field of such files: read, harmless or refused
``sentence_modules``     sentence-transformers folders: their embedding head
``adapters``             LoRA adapters beside a model, in PEFT's files
``safetensors``          safetensors files, one or several
``gguf``                 GGUF files, dequantised when a tensor is used
``store``                models known by name, the hub, and the cache folder
``model_facts``          facts from file headers, without loading weights
=======================  =================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.checkpoints.generation_defaults import GenerationDefaults as GenerationDefaults
    from clearhead.checkpoints.gguf.file import GGUFFile as GGUFFile
    from clearhead.checkpoints.load import Loaded as Loaded
    from clearhead.checkpoints.safetensors.file import SafetensorsFile as SafetensorsFile
    from clearhead.checkpoints.safetensors.file import write_safetensors as write_safetensors
    from clearhead.checkpoints.safetensors.shards import ShardedSafetensors as ShardedSafetensors
    from clearhead.checkpoints.safetensors.shards import open_safetensors as open_safetensors
    from clearhead.checkpoints.store.catalogue import CATALOGUE as CATALOGUE
    from clearhead.checkpoints.store.catalogue import CatalogueEntry as CatalogueEntry
    from clearhead.checkpoints.store.hub import fetch_from_hub as fetch_from_hub
    from clearhead.checkpoints.store.hub import is_hub_id as is_hub_id
    from clearhead.checkpoints.store.model_store import ModelStore as ModelStore

_HOMES = {
    "CATALOGUE": "clearhead.checkpoints.store.catalogue",
    "CatalogueEntry": "clearhead.checkpoints.store.catalogue",
    "GGUFFile": "clearhead.checkpoints.gguf.file",
    "GenerationDefaults": "clearhead.checkpoints.generation_defaults",
    "Loaded": "clearhead.checkpoints.load",
    "ModelStore": "clearhead.checkpoints.store.model_store",
    "SafetensorsFile": "clearhead.checkpoints.safetensors.file",
    "ShardedSafetensors": "clearhead.checkpoints.safetensors.shards",
    "fetch_from_hub": "clearhead.checkpoints.store.hub",
    "is_hub_id": "clearhead.checkpoints.store.hub",
    "open_safetensors": "clearhead.checkpoints.safetensors.shards",
    "write_safetensors": "clearhead.checkpoints.safetensors.file",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
