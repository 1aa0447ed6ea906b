"""Tiny models of every family, and a use of any model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import torch

from clearhead.checkpoints.load import Loaded
from clearhead.checkpoints.save import save
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.text.subwords.training import train_bpe
from clearhead.text.tokenizer import Tokenizer

TEXT = "the students opened their books and their minds"
VOCAB = 263
SMALL = {"vocab": VOCAB, "context": 19, "model": 8, "layers": 1, "heads": 2, "feed_forward": 7}

DECODER = {**SMALL, "kind": "decoder", "gated": True, "bos": 1, "eos": (2,)}
BERT = {
    **SMALL,
    "kind": "encoder",
    "positions": "learned",
    "norm": "layer",
    "norm_place": "after",
    "attention_bias": True,
    "attention_output_bias": True,
    "activation": "gelu",
    "feed_forward_bias": True,
    "embedding_norm": True,
    "pad": 0,
}
CONFIGS = {
    "llama": {**DECODER, "kv_heads": 1, "family": "llama", "tied": False},
    "gpt2": {
        **DECODER,
        "gated": False,
        "family": "gpt2",
        "positions": "learned",
        "norm": "layer",
        "attention_bias": True,
        "attention_output_bias": True,
        "feed_forward_bias": True,
        "activation": "gelu_tanh",
    },
    "bert": {**BERT, "family": "bert", "segments": 2, "head": "embedding", "norm_epsilon": 1e-12},
    "distilbert": {
        **BERT,
        "family": "distilbert",
        "norm_epsilon": 1e-12,
        "head": "classification",
        "labels": 3,
        "classifier": "relu",
        "attention_bias": True,
    },
    "t5": {
        **SMALL,
        "kind": "encoder-decoder",
        "family": "t5",
        "context": 512,
        "encoder_layers": 1,
        "positions": "relative",
        "attention_scale": 1.0,
        "activation": "relu",
        "norm_epsilon": 1e-6,
        "eos": (2,),
        "pad": 0,
        "start": 0,
        "tied": False,
    },
    "clearhead": {
        **DECODER,
        "key_dim": 6,
        "value_dim": 5,
        "sinks": True,
        "attention_softcap": 30.0,
        "window": 5,
        "window_layers": (True,),
        "output_softcap": 20.0,
    },
}


def tiny_tokenizer() -> Tokenizer:
    return train_bpe([TEXT] * 3, VOCAB)


def folder_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def saved(name: str, tokenizer: Tokenizer | None) -> dict[str, bytes]:
    """The files of a model folder."""
    torch.manual_seed(7)
    model = build(ModelConfig(**CONFIGS[name]))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as place:
        return folder_files(save(model, Path(place) / name, tokenizer))


def run(loaded: Loaded, random: Random) -> None:
    """Runs a model on three tokens, and its tokenizer on a text."""
    ids = torch.tensor([[1, 2, min(5, max(0, loaded.config.vocab - 1))]])
    with torch.no_grad():
        if loaded.config.kind == "encoder-decoder":
            loaded.model(ids, ids)
        else:
            loaded.model(ids)
    repr(loaded)
    loaded.config.to_json()
    if loaded.tokenizer is not None:
        run_tokenizer(loaded.tokenizer, random)


def run_tokenizer(tokenizer: Tokenizer, random: Random) -> None:
    """Cuts a text, puts it together again, all at once and in a stream."""
    text = random.choice((TEXT, "Ünïcödé 12 \n 😀", "", " x "))
    tokens = tokenizer.tokens(text)
    ids = tokenizer.encode(text)
    assert [token.id for token in tokens] == ids
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    tokenizer.decode(ids)
    stream = tokenizer.stream()
    "".join([*map(stream.push, ids), stream.flush()])
    for id in ids[:3]:
        tokenizer.id(tokenizer.piece(id))
