"""Small GGUF files with random blocks of any kind, in the shapes of real architectures."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.shared.gguf_blocks import random_blocks
from tests.shared.gguf_models import _write_vocabulary
from tests.shared.tiny_models import VOCAB

MODEL, LAYERS, HEADS, KV_HEADS, HIDDEN, WIDTH = 256, 2, 4, 2, 512, 64
SIZE = 0.05  # of the weights


def write_random_gguf(
    path: Path, kind: str, *, architecture: str = "llama", kinds: dict[str, str] | None = None
) -> Path:
    """Write a model whose matrices are random blocks of ``kind``; ``kinds`` differ, by the end of
    a tensor's name."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("random")
    writer.add_context_length(512)
    writer.add_embedding_length(MODEL)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_key_length(WIDTH)
    writer.add_value_length(WIDTH)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(7)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(2.0)
        writer.add_final_logit_softcapping(5.0)
    _write_vocabulary(writer)
    for name, rows, columns in _matrices():
        found = next((k for end, k in (kinds or {}).items() if name.endswith(end)), kind)
        blocks = random_blocks(found, rows, columns, seed=len(name) + rows, size=SIZE)
        writer.add_tensor(name, blocks.numpy(), raw_dtype=gguf.GGMLQuantizationType[found])
    generator = np.random.default_rng(1)
    for name, width in _vectors(architecture):
        numbers = generator.normal(0 if name.endswith("bias") else 1, 0.2, width)
        writer.add_tensor(name, numbers.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _matrices() -> list[tuple[str, int, int]]:
    shapes = {
        "attn_q": (HEADS * WIDTH, MODEL), "attn_k": (KV_HEADS * WIDTH, MODEL),
        "attn_v": (KV_HEADS * WIDTH, MODEL), "attn_output": (MODEL, HEADS * WIDTH),
        "ffn_gate": (HIDDEN, MODEL), "ffn_up": (HIDDEN, MODEL), "ffn_down": (MODEL, HIDDEN),
    }  # fmt: skip
    layers = [
        (f"blk.{i}.{name}.weight", *size) for i in range(LAYERS) for name, size in shapes.items()
    ]
    return [("token_embd.weight", VOCAB, MODEL), *layers]


def _vectors(architecture: str) -> list[tuple[str, int]]:
    names = {"attn_norm.weight": MODEL, "ffn_norm.weight": MODEL}
    if architecture in ("qwen3", "gemma3"):
        names |= {"attn_q_norm.weight": WIDTH, "attn_k_norm.weight": WIDTH}
    if architecture == "qwen2":
        names |= {"attn_q.bias": HEADS * WIDTH, "attn_k.bias": KV_HEADS * WIDTH}
        names |= {"attn_v.bias": KV_HEADS * WIDTH}
    if architecture.startswith("gemma"):
        names |= {"post_attention_norm.weight": MODEL, "post_ffw_norm.weight": MODEL}
    layers = [(f"blk.{i}.{name}", width) for i in range(LAYERS) for name, width in names.items()]
    return [*layers, ("output_norm.weight", MODEL)]
