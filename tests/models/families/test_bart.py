from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.bart import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "bart", "vocab_size": 11, "d_model": 16, "decoder_ffn_dim": 17,
    "decoder_layers": 3, "encoder_layers": 2, "decoder_attention_heads": 4,
    "max_position_embeddings": 13, "encoder_ffn_dim": 17, "encoder_attention_heads": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "positions", "offset", "norm"),
    [("bart", "learned", 2, True), ("marian", "sinusoidal-halves", 0, False)],
)
def test_bart_and_marian(kind: str, positions: str, offset: int, norm: bool) -> None:
    config = FAMILY.read(FIELDS | {"model_type": kind, "scale_embedding": True})
    assert (config.positions, config.position_offset) == (positions, offset)
    assert config.embedding_norm == norm
    assert config.embedding_scale == 4.0
    written = FAMILY.write(config)
    assert written["model_type"] == kind
    assert FAMILY.read(written).resolved() == config.resolved()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoder_attention_heads": 2}, "encoder_attention_heads is 2 and decoder_attention_he"),
        ({"encoder_ffn_dim": 19}, "encoder_ffn_dim is 19 and decoder_ffn_dim 17: an encoder and"),
        ({"decoder_vocab_size": 13}, "vocab_size is 11 and decoder_vocab_size 13"),
        ({"normalize_before": True}, "normalize_before is True: older versions computed"),
    ],
)
def test_what_is_not_known(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        FAMILY.read(FIELDS | fields)


def test_only_the_decoder_has_cross_attention() -> None:
    sources = FAMILY.sources(FAMILY.read(FIELDS))
    assert sources["decoder.blocks.2.cross_attention.key.bias"].name == (
        "model.decoder.layers.2.encoder_attn.k_proj.bias"
    )
    assert not any("cross" in ours for ours in sources if ours.startswith("encoder"))
    assert sources["head.bias"].row
