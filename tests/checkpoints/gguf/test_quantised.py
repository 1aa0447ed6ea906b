"""A matrix that stays as it is stored: everywhere the numbers of the float32 one."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.checkpoints.gguf import quantised
from clearhead.checkpoints.gguf.quantised import QuantisedTensor, holds_blocks, unpacked
from clearhead.errors import InputError
from clearhead.layers.linear import Linear
from tests.shared.gguf_blocks import SCALES, random_blocks

KINDS = (*SCALES, "F32", "F16", "BF16")


def matrix(kind: str = "Q4_K", rows: int = 37) -> QuantisedTensor:
    return QuantisedTensor(random_blocks(kind, rows, 512), kind, torch.randperm(rows))


def floats_of(parameter: Any) -> Tensor:
    assert isinstance(parameter, QuantisedTensor)
    return parameter.floats()


def linear(weight: QuantisedTensor) -> Linear:
    layer = Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return layer


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_computes_the_same_bits(kind: str) -> None:
    weight = matrix(kind)
    exact, floats = nn.Linear(512, 37, bias=False), weight.floats()
    exact.weight.data = floats
    for tokens in (1, 40):  # torch's product and oneDNN's
        states = torch.randn(2, tokens, 512)
        with torch.no_grad():
            wanted = linear(weight)(states)
            same = Linear(512, 37, bias=False)
            same.weight.data = floats
            assert torch.equal(wanted, same(states))
            torch.testing.assert_close(wanted, exact(states), rtol=1e-4, atol=1e-3)
    ids = torch.tensor([[3, 36, 0], [5, 3, 3]])
    assert torch.equal(functional.embedding(ids, weight), floats[ids])


def test_without_compiled_functions_the_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = matrix("Q6_K")
    compiled = weight.floats()
    monkeypatch.setattr(quantised, "load_kernel", lambda _compile: None)
    assert torch.equal(weight.floats(), compiled)


def test_the_order_of_rows() -> None:
    stored = random_blocks("Q8_0", 5, 64)
    plain = QuantisedTensor(stored, "Q8_0").floats()
    order = torch.tensor([4, 4, 0])
    assert torch.equal(unpacked(stored, "Q8_0", order), plain[order])
    assert torch.equal(QuantisedTensor(stored, "Q8_0", order).taken(order[2:]).floats(), plain[4:])


@pytest.mark.parametrize(
    "part",
    [3, -1, slice(5, 9), slice(None, None, 7), [4, 4, 0], (slice(None), 3), (2, slice(3, 9))],
)
def test_parts_of_it_are_those_of_the_floats(part: Any) -> None:
    weight = matrix("Q5_K")
    assert torch.equal(weight[part] * 1, weight.floats()[part])
    order = torch.tensor([[1, 2], [0, 36]])
    assert torch.equal(weight[order], weight.floats()[order])
    assert torch.equal(weight.T[3:5], weight.floats().T[3:5])


def test_gradients_flow_through_it() -> None:
    weight, states = matrix(), torch.randn(3, 512, requires_grad=True)
    torch.autograd.backward(linear(weight)(states).sum())
    assert states.grad is not None
    torch.testing.assert_close(states.grad, weight.floats().sum(0).expand(3, 512))


def test_it_cannot_be_written_to() -> None:
    weight = matrix()
    before = weight.floats()
    with pytest.raises(InputError, match="the file's own Q4_K blocks") as refused:
        weight.mul_(2)
    assert "dtype=torch.float32" in str(refused.value)
    with pytest.raises(InputError, match="cannot be changed"):
        weight.zero_()
    weight[0].add_(1)  # a copy of one row
    assert torch.equal(weight.floats(), before)


def test_copies_and_files() -> None:
    layer = linear(matrix())
    floats = floats_of(layer.weight)
    other = copy.deepcopy(layer)
    assert isinstance(other.weight, QuantisedTensor) and isinstance(other.weight, nn.Parameter)
    assert isinstance(layer.weight, QuantisedTensor)
    assert other.weight.blocks.data_ptr() == layer.weight.blocks.data_ptr()
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=True)["weight"], floats)
    assert repr(layer.weight.detach()) == "QuantisedTensor(Q4_K, (37, 512))"


def test_another_type_makes_it_an_ordinary_tensor() -> None:
    layer = linear(matrix())
    floats = floats_of(layer.weight)
    layer.to(torch.bfloat16)
    assert type(layer.weight) is nn.Parameter
    assert torch.equal(layer.weight, floats.bfloat16())
    layer = linear(matrix()).to("meta")
    assert type(layer.weight) is nn.Parameter and layer.weight.is_meta


def test_a_model_that_holds_blocks() -> None:
    model = nn.Sequential(linear(matrix("Q5_0")), nn.LayerNorm(37))
    assert holds_blocks(model)
    assert not holds_blocks(model.to(torch.float64))


def test_a_forward_does_not_reach_the_dispatcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """There torch would import another half second of itself, for every tensor class alike."""

    def refuse(func: Any, *_others: Any) -> Any:
        raise AssertionError(f"{func} reached the dispatcher")

    layer = linear(matrix("Q4_1"))
    weight, floats = layer.weight, floats_of(layer.weight)
    monkeypatch.setattr(QuantisedTensor, "__torch_dispatch__", refuse)
    ids = torch.tensor([[3, 36], [0, 3]])
    for tokens in (1, 40):  # torch's product and oneDNN's
        states = torch.randn(2, tokens, 512)
        with torch.no_grad():
            found = layer(states)
        torch.testing.assert_close(found, functional.linear(states, floats), rtol=1e-4, atol=1e-3)
    assert torch.equal(functional.embedding(ids, weight, padding_idx=3), floats[ids])
    for part in (3, -1, slice(5, 9), [4, 4, 0], ids):
        assert torch.equal(weight[part].double(), floats[part].double())
    assert torch.equal(torch.randn(37) @ weight * 0, torch.zeros(512))


def test_a_gradient_of_the_matrix_itself_is_there() -> None:
    weight = nn.Parameter(matrix("Q8_0"), requires_grad=True)
    states = torch.randn(3, 512)
    torch.autograd.backward(functional.linear(states, weight).sum())
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad, states.sum(0).expand(37, 512))


def test_a_lookup_that_would_change_the_matrix_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be changed"):
        functional.embedding(torch.tensor([3]), matrix(), max_norm=0.01)
