"""What the calls are made on: tiny models, a trace, a look, caches, files. Sizes are primes."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import torch

import clearhead as ch
from clearhead.attention.cache import KVCache, SlidingKVCache
from clearhead.checkpoints.load import Loaded
from clearhead.models.cache import ModelCache
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.trace.seen import Seen
from clearhead.trace.watching.watched import Watched
from clearhead.views.roles.shown import ShownRoles
from clearhead.views.shown import ShownDifference, ShownLook, ShownSteps
from clearhead.views.why.shown import ShownWhy

TEXT = "the cat sat on a mat"
SENTENCES = ["the cat sat on a mat", "a dog ran to the cat", "the mat is red"]
CONTEXT = 31
SIZES: dict[str, Any] = {
    "vocab": 41,
    "context": CONTEXT,
    "model": 20,
    "heads": 2,
    "feed_forward": 7,
}


@functools.cache
def place() -> Path:
    """A folder of its own for everything that is written; it goes when the process ends."""
    temporary = tempfile.TemporaryDirectory(prefix="clearhead-interface-")
    _KEPT.append(temporary)
    return Path(temporary.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def folder() -> Path:
    """A folder that is there and holds a file of somebody else."""
    (place() / "folder").mkdir(exist_ok=True)
    (place() / "folder" / "letter.txt").write_text("Dear Lucy,\n")
    return place() / "folder"


def text_file() -> Path:
    """A file that is a text, and neither a model nor a trace."""
    path = place() / "text.txt"
    if not path.exists():
        path.write_text("\n".join(SENTENCES * 7))
    return path


def new_path(ending: str = "") -> Path:
    """A path where nothing is yet."""
    path = place() / "new" / f"{len(_COUNTED)}{ending}"
    path.parent.mkdir(exist_ok=True)
    _COUNTED.append(None)
    return path


_COUNTED: list[None] = []


@functools.cache
def tokenizer() -> Tokenizer:
    return CharacterTokenizer.from_texts(SENTENCES)


@functools.cache
def decoder() -> Loaded:
    """A decoder of 2 layers with learned positions, whose context is short."""
    torch.manual_seed(3)
    config = ch.ModelConfig(
        kind="decoder", layers=2, positions="learned", tied=False, bos=1, eos=(2,), **SIZES
    )
    return _loaded("tiny", ch.Decoder(config))


@functools.cache
def encoder() -> Loaded:
    torch.manual_seed(5)
    config = ch.ModelConfig(kind="encoder", head="embedding", layers=1, segments=2, **SIZES)
    return _loaded("reader", ch.Encoder(config))


@functools.cache
def translator() -> Loaded:
    torch.manual_seed(7)
    config = ch.ModelConfig(
        kind="encoder-decoder", layers=1, encoder_layers=1, start=1, bos=1, eos=(2,), **SIZES
    )
    return _loaded("turn", ch.EncoderDecoder(config))


def _loaded(name: str, model: ch.Decoder | ch.Encoder | ch.EncoderDecoder) -> Loaded:
    model = model.eval().requires_grad_(False)
    return Loaded(name, Path(), model, model.config, tokenizer())


def session() -> ch.Session:
    return ch.Session(decoder(), engine=False)


def ids(batch: int = 2, length: int = 5) -> torch.Tensor:
    return torch.arange(3, 3 + batch * length).view(batch, length)


def cache() -> KVCache:
    """Two rows, three heads, five tokens."""
    made = KVCache()
    made.append(torch.ones(2, 3, 5, 7), torch.ones(2, 3, 5, 4))
    return made


def sliding_cache() -> SlidingKVCache:
    made = SlidingKVCache(3)
    made.append(torch.ones(2, 3, 5, 7), torch.ones(2, 3, 5, 4))
    return made


def model_cache() -> ModelCache:
    """The decoder's, after two rows of five tokens."""
    model = decoder().model
    assert isinstance(model, ch.Decoder)
    made = model.new_cache()
    with torch.no_grad():
        model(ids(), cache=made)
    return made


def another_models_cache() -> ModelCache:
    """Of a model with other layers and widths, after one row of three tokens."""
    model = translator().model
    assert isinstance(model, ch.EncoderDecoder)
    made = model.new_cache()
    with torch.no_grad():
        states, _ = model.encode(ids(1, 4))
        model.decode(ids(1, 3), states, cache=made)
    return made


def watched() -> Watched:
    loaded = decoder()
    assert loaded.tokenizer is not None
    read = loaded.tokenizer.encode(TEXT)
    with ch.watch(loaded, values=True) as seen, torch.no_grad():
        loaded.model(torch.tensor([read]))
    return seen


@functools.cache
def seen() -> Seen:
    return watched()


def closed() -> Seen:
    made = watched()
    made.close()
    return made


@functools.cache
def trace_file() -> Path:
    return seen().save(place() / "run.trace")


@functools.cache
def look() -> ShownLook:
    return ch.look(decoder(), TEXT)


@functools.cache
def why() -> ShownWhy:
    return ch.why(decoder(), TEXT, "a", "t", effects=False)


@functools.cache
def steps() -> ShownSteps:
    return look().steps()


@functools.cache
def difference() -> ShownDifference:
    return ch.diff(look().head("L0H0"), look().head("L1H1"))


@functools.cache
def roles() -> ShownRoles:
    return ch.roles(decoder(), SENTENCES, interventions=0)


@functools.cache
def model_folder() -> Path:
    loaded = decoder()
    return ch.save(loaded.model, place() / "model", loaded.tokenizer)
