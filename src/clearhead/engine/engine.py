"""The engine: a model's quantised weights, and the compiled function that runs all layers.

An engine holds what all its runners share. The cache and workspace of one batch belong to
:class:`clearhead.engine.runner.EngineRunner`. The computation itself is in ``kernels/``, in the
part of Python that numba compiles.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.attention.rotary import Rotary
from clearhead.checkpoints.gguf.quantised import holds_blocks
from clearhead.engine.compiled import step_code, step_is_kept
from clearhead.engine.kernels.structures import Attention, FeedForward, Step
from clearhead.engine.thread_tuner import ThreadTuner
from clearhead.engine.weights import (
    PackedMatrix,
    PackedNorm,
    check_weights_memory,
    heads_padded,
    pack_matrix,
    padded,
    rounded_up,
    structures,
)
from clearhead.errors import InputError
from clearhead.kernels.threads import torch_threads
from clearhead.layers.block import Block
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.stack import Stack

Progress = Callable[[int, int, str], None]  # done, total, description


def engine_obstacle(config: ModelConfig) -> str | None:
    """What in this config the engine does not support; None if it supports every setting."""
    cross = config.kind == "encoder-decoder"
    obstacles = {
        "it is an encoder": config.kind not in ("decoder", "encoder-decoder"),
        "it predicts no next token": config.head != "language",
        f"its positions are {config.positions}": config.positions not in POSITIONS,
        "its attention has sinks": config.sinks,
        "it has segments": bool(config.segments),
        "it normalises queries and keys of cross-attention": config.attention_norm and cross,
        "it normalises queries and keys by LayerNorm": config.attention_norm
        and config.norm == "layer",
        "it has sandwich norms and cross-attention": config.norm_place == "around" and cross,
    }
    return next((reason for reason, there in obstacles.items() if there), None)


LACKING = "this processor, or torch here, lacks what its kernels need"
POSITIONS = ("rotary", "learned", "sinusoidal", "sinusoidal-halves", "none")


def engine_supports_config(config: ModelConfig) -> bool:
    """True if the engine supports every setting of this config."""
    return engine_obstacle(config) is None


@functools.cache
def engine_runs_here() -> bool:
    """True if this machine can run the kernels: numba, torch's OpenMP, half precision, FMA.

    Where their machine code is kept, they were made for this very processor.
    """
    threads = torch_threads()
    if threads is None:
        return False
    if step_is_kept():
        return True
    try:
        from clearhead.kernels.operations import features, fuses, is_arm
    except ImportError:  # no numba, or one that does not support the installed NumPy
        return False
    return fuses() and (is_arm() or "f16c" in features())


class Engine:
    """A model's quantised weights, ready for the kernels.

    Args:
        model: a decoder or encoder-decoder; its encoder is run by torch.
        keep_float32: False frees the float32 weights of the model while they are quantised: less
            memory, but torch cannot run the model afterwards. An encoder is kept, and so is a
            model whose matrices are blocks of a file: they take no memory.
        eight_bits: weights of 16 bits (float16 or bfloat16, also where they were loaded as float32)
            become 8 bits: half the memory, about twice the speed, some loss. Without it they stay
            as they are. The blocks of a GGUF file always do.
        threads: the number of threads. Default: torch's number, or one while that is faster.
        progress: called with (done, total, description) while kernels are compiled or loaded, and
            while the weights are packed.

    Raises:
        InputError: the engine does not support the model, cannot run on this machine, or needs
            more memory than there is.
    """

    def __init__(
        self,
        model: Decoder | EncoderDecoder,
        *,
        keep_float32: bool = True,
        eight_bits: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        config = self.config = model.config
        obstacle = engine_obstacle(config)
        if obstacle is not None or not engine_runs_here():
            raise InputError(
                f"the CPU engine does not support this {config.family} model: "
                f"{obstacle or LACKING}.",
                hint="torch runs it with the same results: leave the engine out.",
            )
        self.eight_bits = eight_bits
        check_weights_memory(model, eight_bits=eight_bits)
        self.prepare(progress)
        self._threads = threads
        self._tuners = {False: ThreadTuner(), True: ThreadTuner()}  # for one token, for several
        self.model = model
        stack = model.stack if isinstance(model, Decoder) else model.decoder
        self.has_cross_attention = isinstance(model, EncoderDecoder)
        self.sizes = _sizes(config)
        self._kept: list[Any] = []  # structures point to their memory
        free = not keep_float32 and not holds_blocks(model)
        self._embed(model, stack)
        if free and isinstance(model, Decoder):
            stack.embedding.tokens.to("meta")
            model.head.to("meta")
        self._layers = []
        for number, block in enumerate(_blocks(stack)):
            if progress is not None:
                progress(number, config.layers, "reading the layers")
            self._layers.append(self._layer(block, free))
        self._attentions = [attention for layer in self._layers for attention in layer[0]]
        self._feed_forwards = [layer[1] for layer in self._layers]
        self.windows = [one.window for one in self._attentions if not one.cross]  # 0: none
        self.final_norm = 0 if stack.norm is None else self._norm(stack.norm)
        if config.norm_place == "after":
            self._shift_norms()
        self._rotary_tables: dict[Rotary, Tensor] = {}
        self._position_table: Tensor | None = None
        self._stack = stack
        if free:
            _trim_memory()

    def __repr__(self) -> str:
        """The model and the size of the packed weights."""
        config = self.config
        return f"Engine({config.family} {config.kind}, {self.weight_bytes:,} bytes of weights)"

    @property
    def threads(self) -> int:
        """The largest number of threads of a step."""
        return self._threads or torch.get_num_threads()

    @property
    def weight_bytes(self) -> int:
        """The bytes of weights that one step reads: each matrix once."""
        matrices = [kept for kept in self._kept if isinstance(kept, PackedMatrix)]
        return sum(matrix.bytes for matrix in matrices if matrix is not self._lookup_only)

    @property
    def attention_modules(self) -> list[nn.Module]:
        """The model's modules whose attention the engine computes, in its order."""
        found: list[nn.Module] = []
        for block in _blocks(self._stack):
            found.append(block.attention)
            found += [] if block.cross_attention is None else [block.cross_attention]
        return found

    @staticmethod
    def prepare(progress: Progress | None = None) -> None:
        """Compile the kernels, or load them from numba's cache."""
        step_function(progress)

    def run(self, step: Step) -> None:
        """Run the compiled step, on all threads or on one, whichever is faster."""
        tuner, maximum = self._tuners[step.tokens > 1], self.threads
        count = maximum if self._threads else tuner.choose(maximum, step.tokens)
        start = time.perf_counter()
        if count == 1:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(step_function())(ctypes.byref(step))
        else:
            threads = torch_threads()
            assert threads is not None
            threads.run(step_function(), ctypes.byref(step), count)
        tuner.record(count, time.perf_counter() - start, step.tokens)

    def structures(self) -> tuple[Any, Any]:
        """Copies of the layers' structures for one runner, which adds its cache's addresses."""
        attentions = (Attention * len(self._attentions))(*self._attentions)
        return attentions, (FeedForward * len(self._feed_forwards))(*self._feed_forwards)

    def rotary_table(self, layer: int, length: int) -> Float[Tensor, "position twice_pairs"] | None:
        """Cosines and sines of positions 0 … length − 1, for the rotation of one layer."""
        rotary = self.config.rotary_of(layer)
        if rotary is None:
            return None
        found = self._rotary_tables.get(rotary)
        if found is None or found.shape[0] < length:
            found = torch.cat(rotary.at(torch.arange(length)), dim=-1)
            self._rotary_tables[rotary] = found
        return found

    def position_table(self, length: int) -> Float[Tensor, "position model_width"] | None:
        """The position embeddings of positions 0 … length − 1."""
        table, embedding = self._position_table, self._stack.embedding.positions
        if embedding is None:
            return None
        if table is None or table.shape[0] < length:
            offset = self.config.position_offset
            if self.config.positions == "learned":
                length = self.config.context
            positions = torch.arange(offset, offset + length)
            with torch.no_grad():
                found = embedding(positions).float()
            table = self._position_table = padded(found, length, self.sizes["model_width"])
        return table

    def _embed(self, model: Decoder | EncoderDecoder, stack: Stack) -> None:
        head, embedding = model.head, stack.embedding
        bias = head.bias if head.weight is None else None
        tokens = pack_matrix(embedding.tokens.weight, bias, eight_bits=self.eight_bits)
        self._lookup_only = None if head.weight is None else tokens
        self.embedding = self._matrix(tokens)
        self.head = self.embedding
        if head.weight is not None:
            packed = pack_matrix(head.weight, head.bias, eight_bits=self.eight_bits)
            self.head = self._matrix(packed)
        self.embedding_norm = 0 if embedding.norm is None else self._norm(embedding.norm)

    def _layer(self, block: Block, free: bool) -> tuple[list[Any], Any]:
        attentions = [self._attention(block.attention, block.attention_residual)]
        if block.cross_attention is not None:
            attentions.append(self._attention(block.cross_attention, block.cross_residual))
        layer = block.feed_forward
        structure = FeedForward(
            self._norm_of(block.feed_forward_residual),
            self._after_norm_of(block.feed_forward_residual),
            0 if layer.gate is None else self._linear(layer.gate),
            self._linear(layer.up),
            self._linear(layer.down),
        )
        if free and block.cross_attention is None:
            block.to("meta")
        return attentions, structure

    def _attention(self, attention: MultiHeadAttention, residual: nn.Module) -> Any:
        sizes, cross = self.sizes, attention.crossing
        key, value = (
            (sizes["key_dim"], sizes["key_width"]),
            (sizes["value_dim"], sizes["value_width"]),
        )
        projections = [(attention.query, attention.heads, key)]
        if not cross:
            projections.append((attention.key, attention.kv_heads, key))
            projections.append((attention.value, attention.kv_heads, value))
        packed = [
            pack_matrix(
                part.weight, part.bias, heads_padded(heads, *widths), eight_bits=self.eight_bits
            )
            for part, heads, widths in projections
        ]
        return Attention(
            norm=self._norm_of(residual),
            after_norm=self._after_norm_of(residual),
            project=self._matrix(*packed),
            output=self._linear(attention.output),
            query_norm=self._head_norm(attention.query_norm),
            key_norm=self._head_norm(attention.key_norm),
            window=attention.window or 0,
            cross=int(cross),
        )

    def _linear(self, linear: nn.Linear) -> int:
        return self._matrix(pack_matrix(linear.weight, linear.bias, eight_bits=self.eight_bits))

    def _matrix(self, *packed: PackedMatrix) -> int:
        """The address of a matrix, or of several whose rows follow one another."""
        made = structures(packed)
        self._kept += [*packed, *made]
        return ctypes.addressof(made[0])

    def _head_norm(self, norm: nn.Module | None) -> int:
        if norm is None:
            return 0
        packed = PackedNorm.of(norm, self.sizes["key_width"])
        self._kept.append(packed)
        return packed.weight.data_ptr()

    def _norm_of(self, residual: nn.Module) -> int:
        norm = residual.before if residual.before is not None else residual.after
        return self._norm(norm)  # type: ignore[arg-type]

    def _after_norm_of(self, residual: nn.Module) -> int:
        """The second norm of a sandwich."""
        return self._norm(residual.after) if residual.place == "around" else 0  # type: ignore[arg-type]

    def _norm(self, norm: nn.Module) -> int:
        packed = PackedNorm.of(norm, self.sizes["model_width"])
        structure = packed.structure()
        self._kept += [packed, structure]
        return ctypes.addressof(structure)

    def _shift_norms(self) -> None:
        """Post-norm: the next layer applies a layer's norm, to its own input."""
        order = []
        for attentions, feed_forward in self._layers:
            order += [*attentions, feed_forward]
        norms = [layer.norm for layer in order]
        for layer, norm in zip(order, [0, *norms[:-1]], strict=True):
            layer.norm = norm
        self.final_norm = norms[-1]


def _trim_memory() -> None:
    """Return freed memory to the system: glibc keeps it otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _blocks(stack: Stack) -> list[Block]:
    return [block for block in stack.blocks if isinstance(block, Block)]


def _sizes(config: ModelConfig) -> dict[str, int]:
    key_dim = config.head_width
    value_dim = config.value_dim or key_dim
    return {
        "model": config.model,
        "model_width": rounded_up(config.model),
        "layers": config.layers,
        "heads": config.heads,
        "kv_heads": config.kv_heads or config.heads,
        "key_dim": key_dim,
        "key_width": rounded_up(key_dim),
        "value_dim": value_dim,
        "value_width": rounded_up(value_dim),
        "hidden_width": rounded_up(config.feed_forward),
        "rotary_pairs": 0 if config.rotary is None else config.rotary.width // 2,
    }


def step_function(progress: Progress | None = None) -> int:
    """Compile or load the step, once; return its address."""
    tell = progress or (lambda _done, _total, _description: None)
    description = "preparing the engine (compiled on first use)"
    return step_code(lambda done, total: tell(done, total, description)).addresses["run_step"]
