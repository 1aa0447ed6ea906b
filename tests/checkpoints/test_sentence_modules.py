from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.checkpoints.sentence_modules import (
    MODULES,
    sentence_config,
    write_sentence_modules,
)
from clearhead.errors import CheckpointError

CONFIG = ch.ModelConfig(
    kind="encoder", head="none", vocab=11, context=13, model=6, layers=1, heads=3, feed_forward=7
)


@pytest.mark.parametrize("unit", [True, False])
def test_what_is_written_is_read_again(tmp_path: Path, unit: bool) -> None:
    config = CONFIG.changed(head="embedding", embedding_unit=unit)
    write_sentence_modules(tmp_path, config)
    assert sentence_config(tmp_path, CONFIG) == config
    lengths = json.loads((tmp_path / "sentence_bert_config.json").read_text())
    assert lengths["max_seq_length"] == 13


@pytest.mark.parametrize("pooling", [{"pooling_mode": "mean"}, {"pooling_mode_mean_tokens": True}])
def test_newer_and_older_pooling_files(tmp_path: Path, pooling: dict[str, Any]) -> None:
    write_sentence_modules(tmp_path, CONFIG)
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    assert sentence_config(tmp_path, CONFIG).head == "embedding"


@pytest.mark.parametrize("pooling", [{"pooling_mode": "cls"}, {"pooling_mode_max_tokens": True}])
def test_another_pooling(tmp_path: Path, pooling: dict[str, Any]) -> None:
    write_sentence_modules(tmp_path, CONFIG)
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(CheckpointError, match="only the mean over tokens is known"):
        sentence_config(tmp_path, CONFIG)


def test_another_chain(tmp_path: Path) -> None:
    chain = [{"type": "sentence_transformers.models.Pooling"}, {"type": "a.Dense"}]
    (tmp_path / MODULES).write_text(json.dumps(chain))
    with pytest.raises(CheckpointError, match="chains Pooling, Dense; Transformer, Pooling and"):
        sentence_config(tmp_path, CONFIG)


def test_a_folder_whose_name_is_too_long(tmp_path: Path) -> None:
    modules = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "a" * 5000}]
    (tmp_path / MODULES).write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=r"names the folder 'a{40}'…: File name too long"):
        sentence_config(tmp_path, CONFIG)
