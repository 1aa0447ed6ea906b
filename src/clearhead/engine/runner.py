"""The runner on the CPU engine: one call of a compiled function for each step."""

from __future__ import annotations

import weakref

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.engine.cache import INITIAL_CAPACITY, EngineCache, LayerCaches
from clearhead.engine.engine import (
    LACKING,
    Engine,
    Progress,
    engine_obstacle,
    engine_runs_here,
)
from clearhead.engine.kernels.structures import CHUNK
from clearhead.engine.observers import observers_of, only_observed
from clearhead.engine.seen_rows import SeenRows
from clearhead.engine.weights import rounded_up
from clearhead.engine.workspace import Workspace, split_into_blocks
from clearhead.errors import InputError
from clearhead.layers.block import Block
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder

_engines: weakref.WeakKeyDictionary[torch.nn.Module, Engine] = weakref.WeakKeyDictionary()


def engine_supports(loaded: Loaded) -> bool:
    """True if the engine supports this model, on this machine and with its present weights."""
    return torch_reason(loaded) is None


def torch_reason(loaded: Loaded) -> str | None:
    """Why torch runs this model and not the engine; None if the engine does."""
    model = loaded.model
    if not isinstance(model, Decoder | EncoderDecoder):
        return "it is an encoder"
    obstacle = engine_obstacle(loaded.config)
    if obstacle is not None:
        return obstacle
    if not only_observed(model):  # somebody changes or reads what its modules compute
        return "its modules have hooks, which the engine does not call"
    parameter = next(model.parameters())
    if parameter.is_meta:  # its weights were freed: only its engine can run it
        return None if model in _engines else "its weights are on the meta device"
    if not parameter.is_cpu:
        return f"its weights are on {parameter.device}"
    if not parameter.is_floating_point():
        return f"its weights are {parameter.dtype}"
    return None if engine_runs_here() else LACKING


def engine_of(
    model: Decoder | EncoderDecoder,
    *,
    keep_float32: bool = True,
    eight_bits: bool = False,
    progress: Progress | None = None,
) -> Engine:
    """Return the model's engine. It is made once, with these options of :class:`Engine`; asked for
    eight bits later on, it is made again."""
    found = _engines.get(model)
    if found is None or (eight_bits and not found.eight_bits):
        found = Engine(model, keep_float32=keep_float32, eight_bits=eight_bits, progress=progress)
        _engines[model] = found
    return found


class EngineRunner:
    """:class:`clearhead.generation.runner.Runner` on an :class:`Engine`.

    The bits of a row depend on its own tokens only: not on the batch, the number of threads, or
    whether the tokens came in one call or in many.
    """

    def __init__(self, engine: Engine, sources: list[list[int]] | None = None) -> None:
        self.engine = engine
        self.vocab = engine.config.vocab
        self.context = engine.config.longest_text
        self._lengths: list[int] = []
        self._cache: LayerCaches | None = None
        self._texts: list[list[int]] = []  # the tokens of each row
        self._stored: list[int] = []  # how many tokens each row had at most since it began
        self._seen_rows: SeenRows | None = None  # if somebody watches
        self._attentions, self._feed_forwards = engine.structures()
        self._workspace = Workspace(engine)
        self._step = self._workspace.step(self._attentions, self._feed_forwards)
        self._source_cache: EngineCache | None = None
        self._source_lengths: list[int] = []
        if engine.has_cross_attention:
            self._encode(sources)
        elif sources is not None:
            raise InputError("a decoder has no encoder to read a source; leave sources out.")

    @classmethod
    def of(cls, loaded: Loaded, sources: list[list[int]] | None = None) -> EngineRunner:
        """Make a runner for a loaded model, whose weights are quantised once."""
        assert isinstance(loaded.model, Decoder | EncoderDecoder)
        return cls(engine_of(loaded.model), sources)

    def __repr__(self) -> str:
        """The engine, and the number of tokens in each row."""
        return f"EngineRunner({self.engine!r}, lengths={self._lengths})"

    @property
    def length(self) -> int:
        """The number of tokens in the longest row."""
        return max(self._lengths, default=0)

    @property
    def lengths(self) -> list[int]:
        """The number of tokens in each row."""
        return list(self._lengths)

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add one or more tokens to each row; return the logits after each row's last token."""
        self._check(rows)
        return self._run(rows, every=False)

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; return the logits after each of them."""
        self._check([ids])
        return self._run([ids], every=True)

    def crop(self, length: int) -> None:
        """Drop all tokens from position ``length`` on, in all rows; the sources stay.

        Layers with a sliding window keep few tokens before it (:data:`clearhead.engine.cache.SPARE`
        of them). If more are dropped, the text that is left is computed again.
        """
        if not 0 <= length <= self.length:
            raise InputError(f"crop to 0 … {self.length} tokens, the cache's length; got {length}.")
        if self._seen_rows is not None:
            self._seen_rows.crop(length)
        self._lengths = [min(row, length) for row in self._lengths]
        self._texts = [text[:length] for text in self._texts]
        if not length:
            self._stored = [0] * len(self._lengths)
        elif not self._can_go_on():
            texts, self._texts = self._texts, [[] for _ in self._texts]
            self._lengths = [0] * len(texts)
            self._stored = list(self._lengths)
            self._run(texts, every=False)

    def reorder(self, rows: list[int]) -> None:
        """Replace row i by the old row ``rows[i]``; the number of rows may change."""
        if self._cache is None:
            raise InputError("reorder: the cache is empty, there are no rows yet.")
        if rows and not 0 <= min(rows) <= max(rows) < len(self._lengths):
            raise InputError(f"reorder: rows must be 0 … {len(self._lengths) - 1}; got {rows}.")
        if self._seen_rows is not None:
            self._seen_rows.hand_over()
        self._cache.reorder(rows, max(self._stored))
        if self._source_cache is not None:
            self._source_cache.reorder(rows, max(self._source_lengths))
            self._source_lengths = [self._source_lengths[row] for row in rows]
        self._lengths = [self._lengths[row] for row in rows]
        self._stored = [self._stored[row] for row in rows]
        self._texts = [list(self._texts[row]) for row in rows]
        self._set_addresses()

    def _can_go_on(self) -> bool:
        """True if every key that the next token of a row attends to is still there."""
        assert self._cache is not None
        widest = max(self.engine.windows)
        return all(
            self._cache.keeps(length + 1 - widest, stored)
            for length, stored in zip(self._lengths, self._stored, strict=True)
        )

    def _check(self, rows: list[list[int]]) -> None:
        if not rows or not all(rows):
            raise InputError("every row of a batch needs at least one token; got an empty one.")
        if self._lengths and len(rows) != len(self._lengths):
            raise InputError(f"this batch has {len(self._lengths)} rows; got {len(rows)}.")
        if self._source_lengths and len(rows) != len(self._source_lengths):
            raise InputError(
                f"there are {len(self._source_lengths)} sources; got {len(rows)} rows."
            )
        low, high = min(map(min, rows)), max(map(max, rows))
        if low < 0 or high >= self.vocab:
            raise InputError(
                f"token ids must be 0 … {self.vocab - 1}, the vocabulary; got {low} … {high}.",
                hint="does the tokenizer belong to this model?",
            )
        before = self._lengths or [0] * len(rows)
        needed = max(old + len(new) for old, new in zip(before, rows, strict=True))
        if self.engine.config.positions == "learned" and needed > self.engine.config.context:
            raise InputError(
                f"{needed} tokens do not fit into this model's context of "
                f"{self.engine.config.context}.",
                hint="shorten the text.",
            )
        self._fit(len(rows), needed)

    def _fit(self, batch: int, needed: int) -> None:
        """Make the cache, or grow it."""
        sizes = self.engine.sizes
        if self._cache is None:
            self._lengths, self._stored = [0] * batch, [0] * batch
            self._texts = [[] for _ in range(batch)]
            self._cache = LayerCaches(
                self.engine.windows, batch, sizes["kv_heads"], max(needed, INITIAL_CAPACITY),
                (sizes["key_width"], sizes["value_width"]),
            )  # fmt: skip
            self._set_addresses()
        elif needed > self._cache.capacity:
            self._cache.grow(needed, max(self._stored))
            self._set_addresses()

    def _set_addresses(self) -> None:
        """Write the addresses of the caches and position tables into the structures."""
        assert self._cache is not None
        step, capacity = self._step, self._cache.capacity
        tables = self.engine.position_table(capacity)
        step.position_table = 0 if tables is None else tables.data_ptr()
        self._tables = [tables]
        source = self._source_cache
        step.chunks = max(capacity, 0 if source is None else source.capacity) // CHUNK
        self._workspace.reserve_partials(step, step.chunks)
        layer = cross_layer = 0
        for attention in self._attentions:
            if attention.cross:
                assert source is not None
                cache, number = source, cross_layer
                cross_layer += 1
            else:
                cache, number = self._cache.layers[layer]
                table = self.engine.rotary_table(layer, capacity)
                attention.rotary = 0 if table is None else table.data_ptr()
                self._tables.append(table)
                layer += 1
            attention.keys = cache.keys[number].data_ptr()
            attention.values = cache.values[number].data_ptr()
            attention.room = cache.capacity
            (
                attention.key_row, attention.key_head, attention.value_row, attention.value_head,
            ) = cache.strides()  # fmt: skip

    def _run(self, rows: list[list[int]], *, every: bool) -> Float[Tensor, "outputs vocab"]:
        outputs = sum(map(len, rows)) if every else len(rows)
        logits = torch.empty(outputs, rounded_up(self.vocab))
        step, workspace = self._step, self._workspace
        workspace.reserve_thread_memory(step, self.engine.threads)
        workspace.set_source_lengths(step, self._source_lengths)
        step.logits, step.logits_row = logits.data_ptr(), 4 * logits.stride(0)
        seen = self._watched(rows)
        lengths = [old + len(new) for old, new in zip(self._lengths, rows, strict=True)]
        self._stored = list(map(max, self._stored, lengths))
        for block in split_into_blocks(rows, self._lengths):
            workspace.set_tokens(step, block, rows, every=every)
            workspace.clear_counters(step)
            if seen is not None:
                seen.prepare(block, rows, drafts=every)
            self.engine.run(step)
            step.logits += step.outputs * step.logits_row
        self._lengths = lengths
        for text, new in zip(self._texts, rows, strict=True):
            text += new
        return self._scaled_and_capped(logits[:, : self.vocab])

    def _watched(self, rows: list[list[int]]) -> SeenRows | None:
        """Where the rows of the next step go; None if nobody watches."""
        observers, seen = observers_of(self.engine.model), self._seen_rows
        if seen is not None and seen.observers != observers:
            seen.stop()
            seen = self._seen_rows = None
        if not observers:
            return None
        if seen is None:
            seen = self._seen_rows = SeenRows(self, observers)
            for observer in observers:
                observer.wait_for(seen)
        seen.begin(rows)
        return seen

    def _scaled_and_capped(
        self, logits: Float[Tensor, "outputs vocab"]
    ) -> Float[Tensor, "outputs vocab"]:
        """Apply the config's output scale and softcap."""
        config = self.engine.config
        if config.output_scale != 1.0:
            logits = logits * config.output_scale
        if config.output_softcap is not None:
            logits = config.output_softcap * torch.tanh(logits / config.output_softcap)
        return logits

    def _encode(self, sources: list[list[int]] | None) -> None:
        """Run the encoder on torch; store the keys and values of every cross-attention."""
        if not sources or not all(sources):
            raise InputError("an encoder-decoder model needs a source for its encoder; got none.")
        model, sizes = self.engine.model, self.engine.sizes
        assert isinstance(model, EncoderDecoder)
        self._source_lengths = [len(source) for source in sources]
        longest = max(self._source_lengths)
        cache = self._source_cache = EngineCache.empty(
            sizes["layers"], len(sources), sizes["kv_heads"], longest,
            sizes["key_width"], sizes["value_width"],
        )  # fmt: skip
        ids = torch.tensor([source + [0] * (longest - len(source)) for source in sources])
        real = torch.arange(longest) < torch.tensor(self._source_lengths)[:, None]
        training = model.training
        model.eval()
        with torch.no_grad():
            states, _ = model.encode(ids, real=None if bool(real.all()) else real)
            for layer, block in enumerate(model.decoder.blocks):
                assert isinstance(block, Block) and block.cross_attention is not None
                cross = block.cross_attention
                split = (sizes["kv_heads"], -1)
                cache.fill(
                    layer,
                    cross.key(states).unflatten(-1, split),
                    cross.value(states).unflatten(-1, split),
                )
        model.train(training)
