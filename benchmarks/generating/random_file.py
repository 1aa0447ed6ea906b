"""A GGUF file of Llama's shape with random blocks: speed and memory do not depend on weights."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
from numpy.typing import NDArray

from clearhead.checkpoints.gguf.file import GGUFFile

# Half-precision scales (and minima) inside a block: numbers and bytes of the block, places of the
# scales, and what makes the numbers of a block about as large as weights are.
BLOCKS = {
    "Q4_0": (32, 18, (0,), 5),
    "Q4_K": (256, 144, (0, 2), 280),
    "Q6_K": (256, 210, (208,), 1400),
}


class Shape(NamedTuple):
    """Sizes of a Llama."""

    layers: int
    model: int
    heads: int
    kv_heads: int
    hidden: int


ONE_BILLION = Shape(22, 2048, 32, 4, 5632)  # 1.1 B, as TinyLlama has
SEVEN_BILLION = Shape(32, 4096, 32, 8, 14_336)  # 7.2 B, as Mistral has


def write_random(path: Path, kind: str, vocabulary: GGUFFile, shape: Shape = ONE_BILLION) -> None:
    """Write a model with random blocks; K kinds have a Q6_K embedding."""
    unfinished = path.with_suffix(".part")
    writer = gguf.GGUFWriter(unfinished, "llama")
    _write_metadata(writer, vocabulary, shape)
    tokens = len(vocabulary.metadata["tokenizer.ggml.tokens"])
    _add(writer, "token_embd.weight", "Q6_K" if kind.endswith("_K") else kind, tokens, shape.model)
    model, hidden = shape.model, shape.hidden
    narrow = model // shape.heads * shape.kv_heads
    shapes = {
        "attn_q": (model, model), "attn_k": (narrow, model), "attn_v": (narrow, model),
        "attn_output": (model, model), "ffn_gate": (hidden, model), "ffn_up": (hidden, model),
        "ffn_down": (model, hidden),
    }  # fmt: skip
    ones = np.ones(model, np.float32)
    for layer in range(shape.layers):
        for name, (rows, columns) in shapes.items():
            _add(writer, f"blk.{layer}.{name}.weight", kind, rows, columns)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", ones)
    writer.add_tensor("output_norm.weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.rename(path)


def _write_metadata(writer: gguf.GGUFWriter, vocabulary: GGUFFile, shape: Shape) -> None:
    given = vocabulary.metadata
    writer.add_name("random")
    writer.add_context_length(8192)
    writer.add_embedding_length(shape.model)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.model // shape.heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(given["tokenizer.ggml.tokens"])
    writer.add_token_types([int(number) for number in given["tokenizer.ggml.token_type"]])
    writer.add_token_merges(given["tokenizer.ggml.merges"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _add(writer: gguf.GGUFWriter, name: str, kind: str, rows: int, columns: int) -> None:
    blocks = _random_blocks(kind, rows, columns, len(writer.tensors[0]))
    writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType[kind])


def _random_blocks(kind: str, rows: int, columns: int, seed: int) -> NDArray[np.uint8]:
    length, size, scales, spread = BLOCKS[kind]
    generator = np.random.default_rng(seed)
    count = columns // length
    blocks = generator.integers(0, 256, (rows, count, size), dtype=np.uint8)
    for place in scales:
        numbers = generator.uniform(0.3, 0.7, (rows, count, 1)) * columns**-0.5 / spread
        blocks[..., place : place + 2] = numbers.astype(np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)
