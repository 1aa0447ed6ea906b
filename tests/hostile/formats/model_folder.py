"""Model folders: config.json, generation_config.json, weights, shards, modules.json."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from clearhead.checkpoints.load import load
from clearhead.checkpoints.model_facts import facts_of
from tests.hostile.formats.models import CONFIGS, run, saved, tiny_tokenizer
from tests.hostile.mutant import Format

GENERATION = {
    "bos_token_id": 1,
    "eos_token_id": [2, 3],
    "pad_token_id": 0,
    "do_sample": True,
    "temperature": 0.6,
    "top_p": 0.9,
    "top_k": 50,
    "repetition_penalty": 1.1,
    "no_repeat_ngram_size": 3,
    "num_beams": 4,
    "forced_bos_token_id": 1,
    "decoder_start_token_id": 0,
    "max_length": 19,
    "early_stopping": True,
}


def use(folder: Path, random: Random) -> None:
    """Loads the folder and runs the model."""
    if random.random() < 0.1:
        facts_of(folder)
    run(load(folder), random)


def _specimens() -> list[dict[str, bytes]]:
    tokenizer = tiny_tokenizer()
    folders = [saved(name, tokenizer if name == "t5" else None) for name in CONFIGS]
    for files in folders:
        fields = json.loads(files["config.json"])
        if fields["model_type"] == "llama":
            fields["rope_parameters"] = {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
            files["config.json"] = json.dumps(fields).encode()
            files["generation_config.json"] = json.dumps(GENERATION).encode()
        if fields["model_type"] == "gpt2":
            files |= _sharded(files.pop("model.safetensors"))
    return folders


def _sharded(whole: bytes) -> dict[str, bytes]:
    from safetensors.torch import load as tensors_of
    from safetensors.torch import save as file_of

    tensors = tensors_of(whole)
    names = sorted(tensors)
    files: dict[str, bytes] = {}
    index: dict[str, str] = {}
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :]), start=1):
        shard = f"model-0000{number}-of-00002.safetensors"
        files[shard] = file_of({name: tensors[name] for name in part}, {"format": "pt"})
        index |= dict.fromkeys(part, shard)
    about = {"metadata": {"total_size": sum(map(len, files.values()))}, "weight_map": index}
    return files | {"model.safetensors.index.json": json.dumps(about).encode()}


MODEL_FOLDER = Format("model folder", _specimens, use, weight=1.5)
