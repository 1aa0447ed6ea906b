"""A model, a trace, a corpus and files whose every text holds sequences that command a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import torch

import clearhead as ch
from clearhead.text.characters import CharacterTokenizer

SIGN = "31;5;99m"  # of a colour that nobody else sets
HOSTILE = f"\x1b[{SIGN}a\x1b]0;b\x07\x9b5n\x7f\u202ec\u2066\u200b\x08"
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}" + HOSTILE


def tokenizer() -> CharacterTokenizer:
    made = CharacterTokenizer.from_texts([HOSTILE * 3 + "the kids left "])
    made.chat_template = TEMPLATE
    return made


def decoder(folder: Path) -> Path:
    """A random decoder that writes control characters, because its vocabulary has little else."""
    torch.manual_seed(3)
    pieces = tokenizer()
    config = ch.ModelConfig(
        kind="decoder", family="llama", vocab=pieces.size, context=211, model=24, layers=2, heads=3,
        kv_heads=3, feed_forward=31, gated=True, tied=False,
    )  # fmt: skip
    return ch.save(ch.Decoder(config).eval().requires_grad_(False), folder, pieces)


def translator(folder: Path) -> Path:
    torch.manual_seed(3)
    pieces = tokenizer()
    config = ch.ModelConfig(
        kind="encoder-decoder", family="t5", vocab=pieces.size, context=211, model=24, layers=1,
        encoder_layers=1, heads=3, feed_forward=31, positions="relative", attention_scale=1.0,
        activation="relu", norm_epsilon=1e-6, tied=False, pad=0, start=0, bos=None, eos=(1,),
    )  # fmt: skip
    return ch.save(ch.EncoderDecoder(config).eval().requires_grad_(False), folder, pieces)


def trace(folder: Path, path: Path) -> Path:
    """A trace of the decoder, with hostile words about what was missed."""
    loaded = ch.load(folder)
    seen = ch.look(loaded, HOSTILE + " the kids left").insight.seen
    seen.missed = f"missed {HOSTILE}"
    for record in seen.records:
        object.__setattr__(record.facts, "note", f"note {HOSTILE}")
    seen.save(path)
    return path


def corpus(path: Path) -> Path:
    """Words, parts of speech and relations, each with a sequence in it."""
    lines = []
    for sentence in range(40):
        for place, word in enumerate(("the", "kids", "left", "it"), 1):
            head = 0 if place == 3 else 3
            relation = "root" if head == 0 else f"dep{HOSTILE}"
            lines.append(f"{place}\t{word}{HOSTILE}\t_\tX{HOSTILE}\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
        del sentence
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def odd_model(folder: Path, source: Path) -> Path:
    """The decoder with hostile names of tensors."""
    from safetensors.torch import load_file, save_file

    folder.mkdir()
    for file in source.iterdir():
        if file.suffix != ".safetensors":
            (folder / file.name).write_bytes(file.read_bytes())
    tensors = load_file(source / "model.safetensors")
    save_file(
        {f"{name}{HOSTILE}": tensor for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    return folder


def odd_config(folder: Path, source: Path) -> Path:
    """The decoder with a hostile text in every field of its config that is a text."""
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    fields = json.loads((folder / "config.json").read_text())
    texts = {name: f"{value}{HOSTILE}" for name, value in fields.items() if isinstance(value, str)}
    (folder / "config.json").write_text(json.dumps(fields | texts | {f"odd{HOSTILE}": HOSTILE}))
    return folder
