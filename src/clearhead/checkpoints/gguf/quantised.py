"""``QuantisedTensor``: a matrix that stays as its file stores it, and is float32 where it is used.

A model of 7 billion parameters needs 28 GB as float32 and 4 GB in its file. So ``load`` gives a
model whose matrices are blocks of the mapped file. Each operation on one unpacks it first, into
memory that is free again afterwards; an embedding unpacks the rows that are wanted. The numbers
are those that unpacking everything at once would give, bit for bit.
"""
# torch's hooks for tensor classes have no types.
# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_map_only

from clearhead.checkpoints.gguf.dequantise import dequantise
from clearhead.checkpoints.gguf.kinds import kind_named
from clearhead.checkpoints.gguf.unpack_rows import UNPACKED, Rows, rows_function, unpack_function
from clearhead.errors import InputError
from clearhead.kernels.loading import load_kernel
from clearhead.kernels.threads import TorchThreads

PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""Kinds whose blocks are single numbers."""

GiveBack = Callable[[int, int], None]  # from a byte of the matrix to another


class QuantisedTensor(Tensor):
    """A float32 matrix in the blocks of a GGUF kind; it cannot be written to.

    ``blocks`` holds the stored rows; row i of the matrix is stored row ``order[i]``.
    """

    blocks: UInt8[Tensor, "stored_row byte"]
    kind: str
    order: Int[Tensor, " row"]
    give_back: GiveBack | None  # the pages of a mapped file

    @staticmethod
    def __new__(
        cls,
        blocks: UInt8[Tensor, "stored_row byte"],
        kind: str,
        order: Int[Tensor, " row"] | None = None,
        give_back: GiveBack | None = None,
    ) -> QuantisedTensor:
        """The matrix of all stored rows, or of those in ``order``."""
        order = torch.arange(len(blocks)) if order is None else order
        stored = kind_named(kind)
        columns = blocks.shape[1] // stored.block_bytes * stored.block_length
        made: QuantisedTensor = Tensor._make_wrapper_subclass(
            cls, (len(order), columns), dtype=torch.float32, device=torch.device("cpu")
        )
        made.blocks, made.kind, made.order, made.give_back = blocks, kind, order, give_back
        return made

    def taken(self, order: Int[Tensor, " taken_row"]) -> QuantisedTensor:
        """The matrix of some of its rows."""
        return QuantisedTensor(self.blocks, self.kind, self.order[order], self.give_back)

    def detach(self) -> QuantisedTensor:
        """The same matrix; torch's own way here would import another half second of torch."""
        return self.taken(torch.arange(len(self.order)))

    def floats(self) -> Tensor:
        """All of it as float32, in memory of its own.

        The file's pages go back: they are read anew in far less time than unpacking takes, and a
        forward does not hold the whole file besides.
        """
        found = unpacked(self.blocks, self.kind, self.order)
        if self.blocks.numel() >= FEWEST_RELEASED:
            self.release()
        return found

    def release(self, first: int = 0, last: int | None = None) -> None:
        """Give the memory of stored rows ``first`` … ``last`` − 1 back: the file's pages, which are
        read again when they are needed. Default: all rows."""
        if self.give_back is not None:
            size = self.blocks.shape[1]
            self.give_back(first * size, (len(self.blocks) if last is None else last) * size)

    @property
    def data(self) -> Tensor:
        """The same matrix without a gradient; assigned to, it is an ordinary tensor from then on,
        as ``module.to(…)`` wants it."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        wants = self.requires_grad
        whole = nn.Parameter(value, wants) if isinstance(self, nn.Parameter) else value.detach()
        torch.utils.swap_tensors(self, whole)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Kind and shape; not the numbers, which are not there yet."""
        return f"QuantisedTensor({self.kind}, {tuple(self.shape)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> QuantisedTensor:
        """The same blocks: nobody can change them."""
        copy = self.detach()
        copy.requires_grad_(self.requires_grad)
        copy._is_param = getattr(self, "_is_param", False)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As float32: another process may not have the file."""
        found = self.floats()
        kept = nn.Parameter(found, self.requires_grad) if isinstance(self, nn.Parameter) else found
        return kept.__reduce_ex__(protocol)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """What a forward asks for, answered before torch's dispatcher is asked.

        The first time that a tensor class reaches the dispatcher, torch imports another half second
        of itself. With a gradient for the matrix itself there is no way around it.
        """
        kwargs = kwargs or {}
        if func in _READING and not (torch.is_grad_enabled() and _wants_gradient(args, kwargs)):
            with torch._C.DisableTorchFunctionSubclass():
                found = _READING[func](func, args, kwargs)
            if found is not None:
                return found
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Unpack, then compute."""
        kwargs = kwargs or {}
        if func in _SAME:
            return args[0].detach()
        rows = _ROWS.get(func)
        if rows is not None and isinstance(args[0], QuantisedTensor):
            wanted = rows(*args, **kwargs)
            if wanted is not None:
                return wanted
        for argument, given in zip(func._schema.arguments, args, strict=False):
            if isinstance(given, QuantisedTensor) and argument.is_write:
                raise InputError(
                    f"this matrix is the file's own {given.kind} blocks and cannot be changed.",
                    hint="load the model with dtype=torch.float32 to change its weights.",
                )
        return func(*_as_floats(args), **_as_floats(kwargs))


def _wants_gradient(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    given = (*args, *kwargs.values())
    return any(isinstance(one, QuantisedTensor) and one.requires_grad for one in given)


_SAME = {torch.ops.aten.detach.default, torch.ops.aten.alias.default}


def _as_floats(given: Any) -> Any:
    return tree_map_only(QuantisedTensor, QuantisedTensor.floats, given)


# Operations that want a few rows: only those are unpacked. None: not this case.
def _embedding(weight: QuantisedTensor, ids: Tensor, *_options: Any, **_more: Any) -> Tensor:
    found = unpacked(weight.blocks, weight.kind, weight.order[ids.flatten()])
    return found.view(*ids.shape, weight.shape[1])


def _selected(weight: QuantisedTensor, dim: int, index: int) -> Tensor | None:
    if dim not in (0, -2):
        return None
    return unpacked(weight.blocks, weight.kind, weight.order[index : index + 1 or None])[0]


def _indexed(weight: QuantisedTensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    if len(indices) != 1 or indices[0] is None:
        return None
    order = weight.order[indices[0]]
    found = unpacked(weight.blocks, weight.kind, order.flatten())
    return found.view(*order.shape, weight.shape[1])


def _sliced(weight: QuantisedTensor, dim: int = 0, *span: Any) -> Tensor | None:
    if dim not in (0, -2):
        return None
    return weight.taken(torch.ops.aten.slice.Tensor(torch.arange(len(weight)), 0, *span))


_ROWS: dict[Any, Callable[..., Tensor | None]] = {
    torch.ops.aten.embedding.default: _embedding,
    torch.ops.aten.select.int: _selected,
    torch.ops.aten.index.Tensor: _indexed,
    torch.ops.aten.slice.Tensor: _sliced,
}


# Functions that only read, each as (function, arguments, named arguments) → result or None.
def _on_floats(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return func(*_as_floats(args), **_as_floats(kwargs))


def _looked_up(_func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor | None:
    """Only ``max_norm`` changes what is read; the other options are for gradients."""
    if len(args) != 2 or kwargs.get("max_norm") is not None:
        return None
    return _embedding(args[1], args[0]) if isinstance(args[1], QuantisedTensor) else None


def _part(_func: Any, args: Sequence[Any], _kwargs: dict[str, Any]) -> Tensor | None:
    """``weight[3]``, ``weight[2:5]``, ``weight[[4, 0]]``: rows."""
    weight, place = args
    if isinstance(place, bool) or not isinstance(place, int | slice | list | Tensor):
        return None
    order = weight.order[place]
    if isinstance(place, slice):
        return QuantisedTensor(weight.blocks, weight.kind, order, weight.give_back)
    found = unpacked(weight.blocks, weight.kind, order.flatten())
    return found.view(*order.shape, weight.shape[1])


_READING: dict[Any, Callable[[Any, Sequence[Any], dict[str, Any]], Any]] = {
    functional.embedding: _looked_up,
    Tensor.__getitem__: _part,
    **dict.fromkeys(
        (
            functional.linear,
            torch.ops.mkldnn._linear_pointwise,
            torch.ops.mkldnn._linear_pointwise.default,
            torch.matmul,
            Tensor.matmul,
            Tensor.__matmul__,
            Tensor.__rmatmul__,
            Tensor.double,
            Tensor.float,
        ),
        _on_floats,
    ),
}


def unpacked(
    blocks: UInt8[Tensor, "stored_row byte"], kind: str, order: Int[Tensor, " row"]
) -> Tensor:
    """Some stored rows as float32."""
    if kind in PLAIN:
        return blocks[order].view(PLAIN[kind]).float()
    stored = kind_named(kind)
    in_row = blocks.shape[1] // stored.block_bytes
    target = torch.empty(len(order), in_row * stored.block_length)
    unpack = load_kernel(lambda threads: _compiled(threads, kind))
    if unpack is not None:
        unpack(blocks, in_row, order.contiguous(), target)
    else:
        rows = blocks[order].view(-1, stored.block_bytes).numpy()
        dequantise(rows, stored, target.view(-1, stored.block_length).numpy())
    return target


Unpack = Callable[[Tensor, int, Tensor, Tensor], None]


def _compiled(threads: TorchThreads, kind: str) -> Unpack | None:
    """The compiled way; None for a kind that has none."""
    if kind not in UNPACKED:
        return None

    def unpack(blocks: Tensor, in_row: int, order: Tensor, target: Tensor) -> None:
        task = Rows(
            blocks.data_ptr(), blocks.stride(0), in_row, order.data_ptr(), len(order),
            target.data_ptr(), 4 * target.stride(0), unpack_function(kind),
        )  # fmt: skip
        count = torch.get_num_threads() if target.numel() >= FEWEST_SHARED else 1
        threads.run(rows_function(), ctypes.byref(task), count)

    return unpack


FEWEST_RELEASED = 1 << 20  # bytes
FEWEST_SHARED = 65_536  # numbers; fewer are unpacked before a second thread has woken up


def holds_blocks(model: nn.Module) -> bool:
    """True if some of the model's matrices are blocks of a file."""
    return any(isinstance(parameter, QuantisedTensor) for parameter in model.parameters())
