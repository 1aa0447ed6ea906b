"""GGUF files: a llama with each kind of vocabulary and several kinds of tensors, and a GPT-2."""

from __future__ import annotations

import io
import struct
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from clearhead.checkpoints.gguf.kinds import KINDS
from clearhead.checkpoints.load import load
from clearhead.checkpoints.model_facts import facts_of
from clearhead.models.build import build
from clearhead.models.families.gguf import gguf_family
from clearhead.text.spelling import byte_alphabet
from tests.hostile.formats.models import run
from tests.hostile.mutant import Format, write

NUMBER = {kind.name: number for number, kind in KINDS.items()}
WIDTH, HIDDEN = 32, 32
MODEL = {
    "context_length": 19,
    "embedding_length": WIDTH,
    "block_count": 1,
    "feed_forward_length": HIDDEN,
    "attention.head_count": 2,
    "attention.head_count_kv": 1,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10000.0,
    "rope.dimension_count": 16,
}
PIECES = ["▁the", "▁", "t", "h", "e", "th", "he", "▁t", "s", "es"]
VOCABULARIES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "tokens": ["<|end|>", *byte_alphabet(), "th", "the"],
        "merges": ["t h", "th e"],
        "pre": "smollm",
        "token_type": [3] + [1] * 258,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "add_bos_token": False,
    },
    "llama": {
        "tokens": ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *PIECES],
        "scores": [0.0] * 259 + [-float(n) for n in range(len(PIECES))],
        "token_type": [2, 3, 3, *[6] * 256, *[1] * len(PIECES)],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_space_prefix": True,
    },
}


def use(folder: Path, random: Random) -> None:
    """Loads the file and runs model and tokenizer."""
    path = folder / "model.gguf"
    if random.random() < 0.1:
        facts_of(path)
    run(load(path), random)


def _packed(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<IB", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
    inner = [_packed(one) for one in value]
    return (
        struct.pack("<I", 9)
        + inner[0][:4]
        + struct.pack("<Q", len(inner))
        + b"".join(one[4:] for one in inner)
    )


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _file(architecture: str, kind: str, tensor_kind: str) -> bytes:
    fields = dict(MODEL)
    if architecture == "gpt2":
        fields["attention.layer_norm_epsilon"] = 1e-5
    vocabulary = VOCABULARIES[kind]
    metadata = {
        "general.architecture": architecture,
        "general.name": "tiny",
        **{f"{architecture}.{name}": value for name, value in fields.items()},
        "tokenizer.ggml.model": kind,
        **{f"tokenizer.ggml.{name}": value for name, value in vocabulary.items()},
        "tokenizer.chat_template": "{{ messages[0].content }}",
    }
    tensors = _tensors(metadata, len(vocabulary["tokens"]))
    return _written(metadata, tensors, tensor_kind)


def _tensors(metadata: dict[str, Any], vocab: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that the model wants, by name."""
    family, config = gguf_family(metadata, ["output.weight"], vocab)
    shapes: dict[str, tuple[int, ...]] = {}
    parameters = dict(build(config).named_parameters())
    for ours, source in family.sources(config).items():
        rows, *rest = parameters[ours].shape
        shapes[source.name] = (rows * source.parts, *rest)
    return shapes


def _written(
    metadata: dict[str, Any], tensors: dict[str, tuple[int, ...]], tensor_kind: str
) -> bytes:
    numbers = np.random.default_rng(5)
    head, data = io.BytesIO(), io.BytesIO()
    head.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for key, value in metadata.items():
        head.write(_text(key) + _packed(value))
    for name, shape in tensors.items():
        kind = tensor_kind if len(shape) == 2 else "F32"
        head.write(_text(name) + struct.pack("<I", len(shape)))
        head.write(b"".join(struct.pack("<Q", axis) for axis in reversed(shape)))
        head.write(struct.pack("<IQ", NUMBER[kind], data.tell()))
        data.write(_blocks(numbers, shape, kind))
        data.write(b"\0" * (-data.tell() % 32))
    return head.getvalue() + b"\0" * (-head.tell() % 32) + data.getvalue()


def _blocks(numbers: np.random.Generator, shape: tuple[int, ...], kind: str) -> bytes:
    if kind == "F32":
        return numbers.standard_normal(shape, dtype=np.float32).tobytes()
    held = KINDS[NUMBER[kind]]
    count = int(np.prod(shape)) // held.block_length
    raw = numbers.integers(0, 255, (count, held.block_bytes), dtype=np.uint8)
    raw[:, :4] = np.frombuffer(np.array([0.01, 0.02], "<f2").tobytes(), np.uint8)
    return raw.tobytes()


def _specimens() -> list[dict[str, bytes]]:
    return [
        {"model.gguf": _file(architecture, kind, tensor_kind)}
        for architecture, kind, tensor_kind in (
            ("llama", "llama", "Q8_0"),
            ("llama", "gpt2", "Q4_1"),
            ("gpt2", "gpt2", "F32"),
        )
    ]


GGUF = Format("GGUF", _specimens, use, weight=0.7)


def _warm() -> None:
    """Load and run each specimen: what that imports and compiles is no memory of a mutant."""
    for files in _specimens():
        with tempfile.TemporaryDirectory() as place:
            write({**files}, Path(place))
            use(Path(place), Random(0))


_warm()
