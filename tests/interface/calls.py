"""A valid call of everything public: what the walk starts from.

``CALLS`` has for each name of the surface the object to call and its arguments, made anew for each
call. Arguments that are left out have their default. Results that compute later (a generator, a
mask, a block to run in) are used here, so that nothing wrong can hide in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import clearhead as ch
from clearhead.attention.cache import KVCache, SlidingKVCache
from clearhead.attention.rotary import Rotary
from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.explain.roles.judging import Rules
from clearhead.explain.roles.properties import Property, PropertyFamily
from clearhead.models.cache import ModelCache
from clearhead.models.presets import preset
from clearhead.trace.cost import Limit
from clearhead.training.settings import TrainingSettings
from tests.interface import subjects
from tests.interface.subjects import CONTEXT, SIZES, TEXT, ids

Make = Callable[[], Any]
HEAD = "L0H1"
SMALL = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}


@dataclass(frozen=True)
class Call:
    """A call with valid arguments. ``function`` and ``arguments`` are made anew each time."""

    function: Callable[[], Callable[..., Any]]
    arguments: Callable[[], dict[str, Any]]
    finish: Callable[[Any], Any] = lambda result: result

    def __call__(self, changed: dict[str, Any]) -> Any:
        """Call it with some arguments changed."""
        return self.finish(self.function()(**{**self.arguments(), **changed}))


def _call(
    function: Callable[..., Any],
    finish: Callable[[Any], Any] = lambda result: result,
    /,
    **arguments: Any,
) -> Call:
    """A call of a plain function; an argument that can be called makes the value."""
    return Call(lambda: function, lambda: _made(arguments), finish)


def _method(
    subject: Callable[[], Any],
    name: str,
    finish: Callable[[Any], Any] = lambda result: result,
    /,
    **arguments: Any,
) -> Call:
    return Call(lambda: getattr(subject(), name), lambda: _made(arguments), finish)


def _made(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value() if callable(value) else value for name, value in arguments.items()}


def numbers(*shape: int) -> Callable[[], torch.Tensor]:
    """Makes different numbers of a shape, between −1 and 1."""
    count = torch.Size(shape).numel()
    return lambda: torch.sin(torch.arange(1, count + 1).float()).view(shape)


def flags(*shape: int) -> Callable[[], torch.Tensor]:
    """Makes booleans; the first of each row is True."""
    return lambda: torch.arange(shape[-1]).expand(shape) % 3 < 2


def spelled_out(mask: Any) -> Any:
    """A mask as booleans, for 3 queries and 5 keys: only this asks the rule."""
    return mask.tensor(3, 5)


def used_events(events: Any) -> list[str]:
    """The events up to the first steps: a run may be as long as its caller wishes."""
    return [type(event).__name__ for event in itertools.islice(events, 4)]


def used_module(module: ch.MultiHeadAttention) -> torch.Tensor:
    """The result for some states: wrong options may show only now."""
    states = numbers(1, 3, module.query.in_features)()
    context = numbers(1, 2, module.key.in_features)() if module.crossing else None
    result: torch.Tensor = module(states, context)
    return result


def served(studio: Any) -> bool:
    """A studio that runs, and is closed."""
    with studio:
        return bool(studio.running)


def watched_run(**options: Any) -> list[str]:
    loaded = subjects.decoder()
    with ch.watch(**options) as seen, torch.no_grad():
        loaded.model(ids(1, 5))
    return [layer.name for layer in seen.layers]


def ablated_run(**options: Any) -> torch.Tensor:
    with ch.ablate(**options), torch.no_grad():
        result: torch.Tensor = subjects.decoder().model(ids(1, 5))
    return result


def patched_run(**options: Any) -> torch.Tensor:
    with ch.patch(**options), torch.no_grad():
        result: torch.Tensor = subjects.decoder().model(ids(1, 5))
    return result


ATTENTION: dict[str, Any] = {
    "query": numbers(2, 4, 3, 5), "key": numbers(2, 2, 7, 5), "value": numbers(2, 2, 7, 5),
    "mask": flags(2, 4, 3, 7), "bias": numbers(2, 4, 3, 7), "causal": True, "window": 3,
    "scale": 0.5, "softcap": 2.5, "sinks": numbers(4),
}  # fmt: skip
PLAIN_ATTENTION = {name: ATTENTION[name] for name in ("query", "key", "value")}
CONFIG: dict[str, Any] = {"kind": "decoder", "layers": 2, **SIZES}
MULTI_HEAD = {"model": 6, "heads": 2}


def _attentions() -> dict[str, Call]:
    keys = {"batch_keys_embedding": numbers(2, 5, 3), "batch_query_embedding": numbers(2, 3)}
    return {
        "attention": _call(ch.attention, **ATTENTION),
        "attention, plain": _call(ch.attention, **PLAIN_ATTENTION),
        "attention, one query": _call(
            ch.attention, **{**PLAIN_ATTENTION, "query": numbers(2, 4, 1, 5)}
        ),
        "attention_steps": _call(ch.attention_steps, lambda steps: steps.output, **ATTENTION),
        "selfish_attention": _call(ch.selfish_attention, **keys),
        "masks.as_mask": _call(ch.masks.as_mask, spelled_out, mask=flags(3, 5)),
        "masks.dense": _call(ch.masks.dense, spelled_out, seen=flags(3, 5)),
        "masks.causal": _call(ch.masks.causal, spelled_out, offset=2),
        "masks.causal, each row": _call(
            ch.masks.causal, spelled_out, offset=lambda: torch.tensor([1, 2])
        ),
        "masks.window": _call(ch.masks.window, spelled_out, before=2, after=1, offset=2),
        "masks.window, each row": _call(
            ch.masks.window, spelled_out, before=2, after=1, offset=lambda: torch.tensor([1, 2])
        ),
        "masks.prefix": _call(ch.masks.prefix, spelled_out, length=2, offset=2),
        "masks.lengths": _call(ch.masks.lengths, spelled_out, count=3),
        "masks.lengths, each row": _call(
            ch.masks.lengths, spelled_out, count=lambda: torch.tensor([3, 5])
        ),
        "masks.padding": _call(ch.masks.padding, spelled_out, real=flags(2, 5)),
        "masks.documents": _call(
            ch.masks.documents, spelled_out, ids=lambda: torch.tensor([[0, 0, 1, 1, 2]])
        ),
        "Mask.tensor": _method(ch.masks.causal, "tensor", queries=3, keys=5, device="cpu"),
        "Mask.draw": _method(ch.masks.causal, "draw", queries=3, keys=5, row=0),
        "Mask.__and__": _method(ch.masks.causal, "__and__", spelled_out, other=flags(3, 5)),
        "Mask.__or__": _method(ch.masks.causal, "__or__", spelled_out, other=flags(3, 5)),
        "Rotary": _call(Rotary, lambda made: made.at(torch.arange(3)), width=6, base=1e4),
        "Rotary.at": _method(
            lambda: Rotary(6), "at", positions=lambda: torch.arange(3), dtype=torch.float32
        ),
    }


def _caches() -> dict[str, Call]:
    new = {"key": numbers(2, 3, 4, 7), "value": numbers(2, 3, 4, 4)}
    counts, rows = (lambda: torch.tensor([1, 4])), (lambda: torch.tensor([1, 1, 0]))
    grown = {"key": numbers(1, 1, 2, 3), "value": numbers(1, 1, 2, 3)}
    return {
        "KVCache": _call(KVCache, lambda cache: cache.append(**_made(grown)), capacity=3),
        "KVCache.append": _method(subjects.cache, "append", **new, counts=counts),
        "KVCache.append, first": _method(KVCache, "append", **new),
        "KVCache.append, even": _method(subjects.cache, "append", **new),
        "KVCache.positions": _method(subjects.cache, "positions", count=3),
        "KVCache.mask": _method(subjects.cache, "mask", spelled_out, window=3),
        "KVCache.crop": _method(subjects.cache, "crop", length=3),
        "KVCache.reorder": _method(subjects.cache, "reorder", rows=rows),
        "SlidingKVCache": _call(SlidingKVCache, lambda c: c.append(**_made(grown)), window=3),
        "SlidingKVCache.append": _method(subjects.sliding_cache, "append", **new),
        "SlidingKVCache.crop": _method(subjects.sliding_cache, "crop", length=5),
        "ModelCache.for_layers": _call(
            ModelCache.for_layers, lambda made: made.length, layers=2, cross=True, capacity=3
        ),
        "ModelCache.positions": _method(subjects.model_cache, "positions", count=3),
        "ModelCache.crop": _method(subjects.model_cache, "crop", length=3),
        "ModelCache.reorder": _method(subjects.model_cache, "reorder", rows=rows),
    }


def _layers() -> dict[str, Call]:
    plain = lambda: _seeded(ch.MultiHeadAttention, **MULTI_HEAD, causal=True)  # noqa: E731
    crossing = lambda: _seeded(ch.MultiHeadAttention, **MULTI_HEAD, context=5)  # noqa: E731
    rotating = lambda: _seeded(  # noqa: E731
        ch.MultiHeadAttention, 8, 2, rotary=Rotary(4), causal=True
    )
    return {
        "MultiHeadAttention": Call(
            lambda: lambda **given: _seeded(ch.MultiHeadAttention, **given),
            lambda: dict(MULTI_HEAD),
            used_module,
        ),
        "MultiHeadAttention, crossing": Call(
            lambda: lambda **given: _seeded(ch.MultiHeadAttention, **given),
            lambda: MULTI_HEAD | {"context": 5},
            used_module,
        ),
        "MultiHeadAttention.forward": _method(
            plain, "forward", states=numbers(2, 3, 6), mask=flags(2, 2, 3, 3),
            bias=numbers(2, 2, 3, 3),
        ),
        "MultiHeadAttention.forward, cached": _method(
            plain, "forward", states=numbers(2, 3, 6), cache=KVCache,
            counts=lambda: torch.tensor([1, 3]),
        ),
        "MultiHeadAttention.forward, crossing": _method(
            crossing, "forward", states=numbers(2, 3, 6), context=numbers(2, 4, 5)
        ),
        "MultiHeadAttention.forward, rotating": _method(
            rotating, "forward", states=numbers(2, 3, 8),
            rotation=lambda: Rotary(4).at(torch.arange(3)[None]),
        ),
        "MultiHeadAttention.head": _method(plain, "head", index=1),
        "from_torch": _call(
            ch.from_torch, module=lambda: torch.nn.MultiheadAttention(6, 2), cross=False
        ),
        "to_torch": _call(ch.to_torch, module=plain),
    }  # fmt: skip


def _seeded(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    torch.manual_seed(11)
    return make(*args, **options).eval().requires_grad_(False)


def _model(name: str) -> Callable[[], Any]:
    return lambda: getattr(subjects, name)().model


def _models() -> dict[str, Call]:
    every = flags(2, 5)
    config = {"config": lambda: subjects.decoder().config}
    states: Make = lambda: _model("translator")().encode(ids(2, 4))[0]  # noqa: E731
    counts = lambda: torch.tensor([2, 4])  # noqa: E731
    return {
        "ModelConfig": _call(ch.ModelConfig, **CONFIG),
        "ModelConfig, encoder-decoder": _call(
            ch.ModelConfig, **{**CONFIG, "kind": "encoder-decoder", "encoder_layers": 2}
        ),
        "ModelConfig, encoder": _call(
            ch.ModelConfig,
            **{**CONFIG, "kind": "encoder", "head": "classification", "labels": 2, "segments": 2},
        ),
        "ModelConfig.dropout_of": _method(config["config"], "dropout_of", part="attention"),
        "ModelConfig.windowed": _method(config["config"], "windowed", layer=1),
        "ModelConfig.rotary_of": _method(config["config"], "rotary_of", layer=1),
        "ModelConfig.changed": _method(
            config["config"], "changed", layers=1, dropout=0.5, eos=(2,)
        ),
        "ModelConfig.from_json": _call(
            ch.ModelConfig.from_json, text=lambda: subjects.decoder().config.to_json()
        ),
        "ModelConfig.from_fields": _call(
            ch.ModelConfig.from_fields, fields=lambda: dict(CONFIG)
        ),
        "preset": _call(preset, name="transformer-base", layers=2),
        "Decoder": _call(ch.Decoder, **config),
        "Encoder": _call(ch.Encoder, config=lambda: subjects.encoder().config),
        "EncoderDecoder": _call(ch.EncoderDecoder, config=lambda: subjects.translator().config),
        "Decoder.forward": _method(
            _model("decoder"), "forward", ids=ids, real=every, last_only=False
        ),
        "Decoder.forward, cached": _method(
            _model("decoder"), "forward", ids=ids, cache=subjects.model_cache
        ),
        "Decoder.new_cache": _method(_model("decoder"), "new_cache", _filled, capacity=3),
        "Encoder.forward": _method(
            _model("encoder"), "forward", ids=ids, real=every,
            segments=lambda: torch.tensor([[0, 0, 1, 1, 1]] * 2),
        ),
        "EncoderDecoder.forward": _method(
            _model("translator"), "forward", source=lambda: ids(2, 4), target=ids,
            source_real=flags(2, 4), target_real=every,
        ),
        "EncoderDecoder.encode": _method(
            _model("translator"), "encode", source=ids, real=every
        ),
        "EncoderDecoder.decode": _method(
            _model("translator"), "decode", target=ids, source=states, source_counts=counts,
            real=every,
        ),
        "EncoderDecoder.decode, cached": _method(
            _model("translator"), "decode", target=ids, source=states,
            cache=lambda: _model("translator")().new_cache(),
        ),
        "EncoderDecoder.new_cache": _method(_model("translator"), "new_cache", capacity=3),
        "Loaded": _call(ch.Loaded, lambda made: (made.name, repr(made)[:7]), **_loaded_fields()),
    }  # fmt: skip


def _filled(cache: ModelCache) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = subjects.decoder().model(ids(), cache=cache)
    return result


def _loaded_fields() -> dict[str, Any]:
    fields = ("name", "path", "model", "config", "tokenizer")
    return {name: lambda name=name: getattr(subjects.decoder(), name) for name in fields}


def _files() -> dict[str, Call]:
    decoder = subjects.decoder
    return {
        "load": _call(
            ch.load, repr, model=subjects.model_folder, dtype=torch.float32, device="cpu"
        ),
        "save": _call(
            ch.save, lambda path: path.name != "", model=lambda: decoder().model,
            folder=subjects.new_path, tokenizer=subjects.tokenizer,
            generation=GenerationDefaults(top_k=5),
        ),
        "open_trace": _call(ch.open_trace, repr, path=subjects.trace_file),
        "Tokenizer.tokens": _method(subjects.tokenizer, "tokens", text=TEXT, special=True),
        "Tokenizer.encode": _method(subjects.tokenizer, "encode", text=TEXT, special=True),
        "Tokenizer.decode": _method(
            subjects.tokenizer, "decode", ids=[3, 5, 4], skip_special=True
        ),
        "Tokenizer.piece": _method(subjects.tokenizer, "piece", id=3),
        "Tokenizer.id": _method(subjects.tokenizer, "id", piece="a"),
        "Tokenizer.check_id": _method(subjects.tokenizer, "check_id", id=3),
        "Tokenizer.check_ids": _method(subjects.tokenizer, "check_ids", ids=[3, 5, 4]),
        "Tokenizer.stream": _method(
            subjects.tokenizer, "stream", lambda stream: stream.push(3), skip_special=True
        ),
        "Tokenizer.save": _method(subjects.tokenizer, "save", folder=subjects.place),
        "StreamDecoder.push": _method(lambda: subjects.tokenizer().stream(), "push", id=3),
        "Passage.positions": _method(
            lambda: subjects.seen().labels.passages[0], "positions", word="t"
        ),
    }  # fmt: skip


def _generation() -> dict[str, Call]:
    chosen: dict[str, Any] = {
        "model": subjects.decoder, "prompt": "the cat", "max_tokens": 3, "seed": 7, "engine": False,
    }  # fmt: skip
    return {
        "generate": _call(ch.generate, list, **chosen),
        "generate, sampling": _call(ch.generate, list, **chosen, temperature=0.7, top_k=5),
        "generate, source": _call(ch.generate, list, **{**chosen, "model": subjects.translator}),
        "beam_search": _call(
            ch.beam_search, loaded=subjects.decoder, prompt="the cat", beams=3, best=2,
            max_tokens=3, engine=False,
        ),
        "Session": _call(
            ch.Session, lambda made: list(ch.generate(made, "the cat", max_tokens=2, seed=3)),
            loaded=subjects.decoder, engine=False,
        ),
    }  # fmt: skip


def _traces() -> dict[str, Call]:
    seen = subjects.seen

    def head() -> Any:
        return seen()[HEAD]

    labelled = {"tokenizer": subjects.tokenizer, "text": TEXT}
    return {
        "watch": _call(watched_run, model=subjects.decoder, layers=[0], heads=[1], values=False),
        "Seen": _call(
            ch.Seen, repr, records=lambda: list(seen().records),
            tokens=lambda: seen().labels.passages, missed="",
        ),
        "Seen.__getitem__": _method(seen, "__getitem__", name=HEAD),
        "Seen.label": _method(subjects.watched, "label", repr, **labelled),
        "Seen.cost": _method(seen, "cost", lambda cost: cost.bytes, name=HEAD, view="map", size=7),
        "Seen.verify": _method(seen, "verify", repr, rows=3),
        "Seen.save": _method(seen, "save", lambda path: path.exists(), path=subjects.new_path),
        "HeadView.of": _method(head, "of", repr, batch=0),
        "HeadView.__getitem__": _method(
            lambda: subjects.seen()["L0"], "__getitem__", repr, heads=1
        ),
        "HeadView.row": _method(head, "row", row=3),
        "HeadView.column": _method(head, "column", column=3),
        "HeadView.weights": _method(head, "weights", rows=3, columns=slice(0, 5)),
        "HeadView.top": _method(head, "top", row=3, count=2),
        "HeadView.map": _method(
            head, "map", lambda made: made.cells, size=7, pool="max", rows=slice(0, 9),
            columns=range(3, 11),
        ),
        "HeadView.entropy": _method(head, "entropy", rows=3),
        "HeadView.output": _method(head, "output", rows=3),
        "HeadView.words": _method(head, "words", lambda made: made.weights),
        "HeadView.cost": _method(
            head, "cost", lambda cost: cost.bytes, view="map", rows=3, columns=3, size=7
        ),
        "PooledMap.cell": _method(lambda: head().map(size=7), "cell", row=1, column=2),
        "Axis.places": _method(lambda: head().rows, "places", repr, chosen=3),
        "Axis.run": _method(lambda: head().rows, "run", chosen=slice(0, 5)),
        "Axis.position": _method(lambda: head().rows, "position", chosen=3),
        "Limit": _call(
            Limit, lambda limit: subjects.seen()[HEAD].weights(limit=limit), bytes=10**9,
            seconds=10.0,
        ),
    }  # fmt: skip


def _views() -> dict[str, Call]:
    look, path = subjects.look, subjects.new_path
    written = {
        f"Shown.{name}": _method(
            subjects.steps, name, type, path=lambda name=name: path(f".{name}")
        )
        for name in ("html", "svg", "png", "csv", "json")
    }
    return written | {
        "look": _call(
            ch.look, str, model=subjects.decoder, text=TEXT, word="cat", head=HEAD, generate=0
        ),
        "look, source": _call(ch.look, str, model=subjects.translator, text=TEXT, source=TEXT),
        "steps": _call(ch.steps, str, seen=look, head=HEAD, word="cat"),
        "steps, model": _call(ch.steps, str, seen=subjects.decoder, text=TEXT),
        "diff": _call(
            ch.diff, str, before=subjects.decoder, after=subjects.decoder, text=TEXT, head=HEAD
        ),
        "Shown.save": _method(subjects.steps, "save", type, path=lambda: path(".svg")),
        "ShownLook.head": _method(look, "head", str, name=HEAD),
        "ShownLook.word": _method(look, "word", str, word="cat", head=HEAD),
        "ShownLook.gallery": _method(look, "gallery", lambda made: made.maps, size=5),
        "ShownLook.map": _method(look, "map", str, head=HEAD, size=5),
        "ShownLook.steps": _method(look, "steps", str, head=HEAD, word="cat"),
        "ShownLook.with_aids": _method(look, "with_aids", str, words=True, hide="nothing"),
        "ShownLook.weights_of": _method(look, "weights_of", layer="L0", rows=[0, 2]),
        "ShownLook.axes": _method(look, "axes", layer="L0"),
        "ShownLook.is_short": _method(look, "is_short", layer="L0"),
        "ShownLook.predictions": _method(look, "predictions", str, word="cat", top=3),
        "ShownLook.predictions, all": _method(look, "predictions", str, top=3),
        "why": _call(
            ch.why,
            str,
            model=subjects.decoder,
            text=TEXT,
            token="a",
            instead="t",
            position="sat",
            effects=True,
        ),
        "why, source": _call(
            ch.why, str, model=subjects.translator, text=TEXT, source=TEXT, effects=False
        ),
        "patch_map": _call(
            ch.patch_map,
            str,
            model=subjects.decoder,
            text=TEXT,
            donor="the mat sat on a cat",
            token="a",
            instead="t",
            position="sat",
        ),
        "ShownWhy.head": _method(subjects.why, "head", repr, name=HEAD),
        "ShownWhy.score": _method(subjects.why, "score", repr, head=HEAD, query="sat", key="cat"),
        "ablate": _call(ablated_run, model=subjects.decoder, heads=HEAD, way="zero"),
        "ablate, mean": _call(
            ablated_run, model=subjects.decoder, heads=["L0", "L1F"], way="mean", over=TEXT
        ),
        "ablate, edge": _call(ablated_run, model=subjects.decoder, heads=HEAD, source=1, query=3),
        "patch": _call(
            patched_run, model=subjects.decoder, donor="the cat sat", at=HEAD, position=3
        ),
    }


def _of_property(made: Property | PropertyFamily) -> tuple[str, str, str]:
    return made.name, made.level, made.kind


def _roles() -> dict[str, Call]:
    nothing: Callable[[], Any] = lambda: lambda sentence: {}  # noqa: E731
    return {
        "studio": _call(
            ch.studio, served, model=subjects.decoder, host="127.0.0.1", port=0, open=False
        ),
        "roles": _call(
            ch.roles, lambda made: made.title, model=subjects.decoder,
            corpus=lambda: list(subjects.SENTENCES), properties=["previous token"], interventions=0,
            batch_tokens=64, rules=Rules, share=(0, 1),
        ),
        "Rules": _call(
            Rules, lambda rules: ch.roles(
                subjects.decoder(), subjects.SENTENCES, interventions=0, rules=rules,
                properties=["previous token"],
            ).title,
        ),
        "Property": _call(Property, _of_property, name="none", targets=nothing),
        "PropertyFamily": _call(PropertyFamily, _of_property, name="none", members=nothing),
        "ShownRoles.head": _method(subjects.roles, "head", str, name=HEAD),
        "ShownRoles.evidence": _method(subjects.roles, "evidence", str, name=HEAD, most=3),
        "ShownRoles.best": _method(subjects.roles, "best", name="previous token"),
        "ShownRoles.kind_of": _method(subjects.roles, "kind_of", name="previous token"),
    }  # fmt: skip


def _training() -> dict[str, Call]:
    return {
        "train": _call(
            ch.train, used_events, texts=lambda: [" ".join(subjects.SENTENCES) * 3],
            out=subjects.new_path, tokenizer="characters", steps=2, device="cpu",
            model=lambda: dict(SMALL), settings=lambda: {"batch_tokens": 32},
        ),
        "train, pairs": _call(
            ch.train, used_events, texts=lambda: [("a b c", "c b a"), ("b c", "c b")] * 7,
            pairs=True, out=subjects.new_path, tokenizer="characters", steps=2, device="cpu",
            model=lambda: dict(SMALL) | {"encoder_layers": 1},
        ),
        "TrainingSettings": _call(TrainingSettings, steps=3),
        "TrainingSettings.changed": _method(
            lambda: TrainingSettings(steps=3), "changed", steps=5, learning_rate=0.5
        ),
        "TrainingSettings.from_fields": _call(
            TrainingSettings.from_fields, fields=lambda: {"steps": 3}
        ),
    }  # fmt: skip


CALLS: dict[str, Call] = {
    **_attentions(), **_caches(), **_layers(), **_models(), **_files(), **_generation(),
    **_traces(), **_views(), **_roles(), **_training(),
}  # fmt: skip
assert len(TEXT) < CONTEXT
