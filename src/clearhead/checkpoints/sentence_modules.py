"""modules.json: the embedding head of a sentence-transformers folder, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clearhead.checkpoints.description import description_errors
from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json, read_json_array, write_json
from clearhead.files.regular_file import reason
from clearhead.models.config import ModelConfig

MODULES = "modules.json"
KNOWN = {"Transformer", "Pooling", "Normalize"}
PACKAGE = "sentence_transformers.models"


def sentence_config(folder: Path, config: ModelConfig) -> ModelConfig:
    """Return the encoder's config with the embedding head that the folder describes."""
    modules = read_json_array(folder / MODULES)
    with description_errors(folder / MODULES):
        kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
        paths = [str(module.get("path", "")) for module in modules]
    if "Pooling" not in kinds or set(kinds) - KNOWN:
        raise CheckpointError(
            f"{folder / MODULES} chains {', '.join(kinds)}; Transformer, Pooling and Normalize are "
            "known."
        )
    pooling = folder / Path(paths[kinds.index("Pooling")]).name / "config.json"
    if _is_there(pooling) and _modes(read_json(pooling)) - {"mean", "mean_tokens"}:
        raise CheckpointError(f"{pooling}: only the mean over tokens is known.")
    return config.changed(head="embedding", embedding_unit="Normalize" in kinds)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError) as error:  # a name that is too long, say
        raise CheckpointError(
            f"{MODULES} names the folder {path.parent.name[:40]!r}…: {reason(error)}."
        ) from error


def _modes(fields: dict[str, Any]) -> set[str]:
    """Return the pooling modes: newer folders name one, older ones have a flag for each."""
    if "pooling_mode" in fields:
        return {str(fields["pooling_mode"])}
    start = "pooling_mode_"
    return {
        name.removeprefix(start) for name, on in fields.items() if name.startswith(start) and on
    }


def write_sentence_modules(folder: Path, config: ModelConfig) -> None:
    """Write the files that :func:`sentence_config` and sentence-transformers read."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if config.embedding_unit else [])]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"{PACKAGE}.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    write_json(folder / MODULES, modules)
    pooling = folder / "1_Pooling"
    mean = {"word_embedding_dimension": config.model, "pooling_mode_mean_tokens": True}
    others = ("cls_token", "max_tokens", "mean_sqrt_len_tokens")
    write_json(pooling / "config.json", mean | {f"pooling_mode_{name}": False for name in others})
    length = {"max_seq_length": config.context, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", length)
