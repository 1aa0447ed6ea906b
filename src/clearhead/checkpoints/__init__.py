"""Files to models: safetensors, GGUF, and the store that fetches models by name.

Names load on first use: the store alone must not cost the import of torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.checkpoints.catalogue import CATALOGUE as CATALOGUE
    from clearhead.checkpoints.catalogue import CatalogueEntry as CatalogueEntry
    from clearhead.checkpoints.gguf_file import GGUFFile as GGUFFile
    from clearhead.checkpoints.hub import fetch_from_hub as fetch_from_hub
    from clearhead.checkpoints.hub import is_hub_id as is_hub_id
    from clearhead.checkpoints.safetensors_file import SafetensorsFile as SafetensorsFile
    from clearhead.checkpoints.safetensors_file import write_safetensors as write_safetensors
    from clearhead.checkpoints.safetensors_shards import ShardedSafetensors as ShardedSafetensors
    from clearhead.checkpoints.safetensors_shards import open_safetensors as open_safetensors
    from clearhead.checkpoints.store import ModelStore as ModelStore

_HOMES = {
    "CATALOGUE": "clearhead.checkpoints.catalogue",
    "CatalogueEntry": "clearhead.checkpoints.catalogue",
    "GGUFFile": "clearhead.checkpoints.gguf_file",
    "ModelStore": "clearhead.checkpoints.store",
    "SafetensorsFile": "clearhead.checkpoints.safetensors_file",
    "ShardedSafetensors": "clearhead.checkpoints.safetensors_shards",
    "fetch_from_hub": "clearhead.checkpoints.hub",
    "is_hub_id": "clearhead.checkpoints.hub",
    "open_safetensors": "clearhead.checkpoints.safetensors_shards",
    "write_safetensors": "clearhead.checkpoints.safetensors_file",
}
__all__ = [*_HOMES]
__getattr__ = lazy(__name__, _HOMES)
