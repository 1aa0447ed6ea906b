from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError, ShapeError

KEYS = [
    [[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]],
    [[-2, -1, 0], [1, 0, -1], [-1, 1, 0], [-1, -3, 1]],
    [[2, 3, 9], [1, 4, 3], [-1, 0, 5], [-1, -2, 0]],
]
QUERIES = [[2, 0, -1], [-2, 1, -1], [1, 1, 1]]
# By hand. First: scores 1, 3, -2, -3; e^1 + e^3 + e^-2 + e^-3 = 22.989.
# Second: scores 3, -1, 3, -2; the two 3s share nearly everything. Third: 14, 8, 4, -3.
RESULTS = [[0.98, 0.01, -0.75], [-1.48, -0.01, -0.01], [2.00, 3.00, 8.98]]


def by_hand(keys: Any, query: Any) -> Any:
    """The three lines of the definition, once more and in NumPy."""
    scores = np.array([sum(a * b for a, b in zip(key, query, strict=True)) for key in keys])
    shares = np.exp(scores) / np.exp(scores).sum()
    return scores, shares, shares @ np.array(keys)


def test_the_scores_and_weights_of_the_worked_example() -> None:
    scores, shares, result = by_hand(KEYS[0], QUERIES[0])
    assert scores.tolist() == [1, 3, -2, -3]
    assert shares.round(2).tolist() == [0.12, 0.87, 0.01, 0.00]
    assert result.round(2).tolist() == RESULTS[0]


def test_the_steps_of_the_worked_example_come_from_the_general_function_too() -> None:
    query = torch.tensor([QUERIES[0]]).double()
    keys = torch.tensor(KEYS[0]).double()
    steps = ch.attention_steps(query, keys, keys, scale=1.0)
    assert steps.scores.tolist() == [[1, 3, -2, -3]]
    assert steps.weights.numpy().round(2).tolist() == [[0.12, 0.87, 0.01, 0.00]]
    assert steps.output.numpy().round(2).tolist() == [RESULTS[0]]


@pytest.mark.parametrize("example", range(3))
def test_one_query(example: int) -> None:
    result = ch.selfish_attention(np.array(KEYS[example]), np.array(QUERIES[example]))
    assert isinstance(result, np.ndarray)
    assert result.shape == (3,)
    assert result.round(2).tolist() == RESULTS[example]
    np.testing.assert_allclose(result, by_hand(KEYS[example], QUERIES[example])[2], rtol=1e-12)


def test_a_batch_of_three() -> None:
    result = ch.selfish_attention(np.array(KEYS), np.array(QUERIES))
    assert result.shape == (3, 3)
    assert result.round(2).tolist() == RESULTS


def test_torch_in_torch_out() -> None:
    keys, queries = torch.tensor(KEYS), torch.tensor(QUERIES)
    together = ch.selfish_attention(keys, queries)
    alone = ch.selfish_attention(keys[0], queries[0])
    assert isinstance(together, torch.Tensor)
    assert together.shape == (3, 3) and alone.shape == (3,)
    torch.testing.assert_close(alone, together[0])
    torch.testing.assert_close(together, torch.tensor(RESULTS), atol=0.006, rtol=0)


def test_sizes_that_are_all_different() -> None:
    keys = np.random.default_rng(0).normal(size=(5, 7, 3))
    queries = np.random.default_rng(1).normal(size=(5, 3))
    result = ch.selfish_attention(keys, queries)
    wanted = np.stack([by_hand(k, q)[2] for k, q in zip(keys, queries, strict=True)])
    np.testing.assert_allclose(result, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_floats_keep_their_type(dtype: type[np.floating[Any]]) -> None:
    result = ch.selfish_attention(np.array(KEYS[0], dtype), np.array(QUERIES[0], dtype))
    assert result.dtype == dtype
    np.testing.assert_allclose(result, by_hand(KEYS[0], QUERIES[0])[2], atol=2e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_torch_floats_keep_their_type(dtype: torch.dtype) -> None:
    keys, query = torch.tensor(KEYS[0], dtype=dtype), torch.tensor(QUERIES[0], dtype=dtype)
    assert ch.selfish_attention(keys, query).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.bool_, np.longdouble, ">f8", ">i4"])
def test_other_numpy_numbers_are_computed_in_float64(dtype: Any) -> None:
    keys, query = np.array([[1, 0], [0, 1], [1, 1]], dtype), np.array([1, 0], dtype)
    result = ch.selfish_attention(keys, query)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, by_hand(keys.astype(float), query.astype(float))[2])


def test_whole_numbers_and_mixed_types_in_torch() -> None:
    keys, query = torch.tensor(KEYS[0]), torch.tensor(QUERIES[0])
    assert ch.selfish_attention(keys, query).dtype == torch.float32
    assert ch.selfish_attention(keys.double(), query.float()).dtype == torch.float64


def test_memory_in_any_order() -> None:
    rng = np.random.default_rng(2)
    turned = rng.normal(size=(3, 7)).T  # (key, model), columns side by side in memory
    query = rng.normal(size=6)[::-2]
    frozen = turned.copy()
    frozen.flags.writeable = False
    wanted = by_hand(turned, query)[2]
    for keys in (turned, turned[::-1], frozen):
        np.testing.assert_allclose(ch.selfish_attention(keys, query), wanted, rtol=1e-12)


def test_arguments_are_left_alone() -> None:
    keys, query = np.array(KEYS[0], float), np.array(QUERIES[0], float)
    ch.selfish_attention(keys, query)
    assert keys.tolist() == KEYS[0] and query.tolist() == QUERIES[0]


def test_gradient_flows() -> None:
    keys = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    query = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ch.selfish_attention, (keys, query))
    mixed: Any = ch.selfish_attention(keys.detach().numpy(), query)  # type: ignore[call-overload]
    assert isinstance(mixed, np.ndarray)


def test_large_scores_do_not_overflow() -> None:
    keys = np.array([[1000.0, 0.0], [0.0, 1000.0]])
    assert ch.selfish_attention(keys, np.array([1.0, 0.0])).tolist() == [1000.0, 0.0]


def test_an_empty_batch_gives_an_empty_result() -> None:
    assert ch.selfish_attention(np.zeros((0, 5, 3)), np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("keys", "query"),
    [((4, 3), (4, 3)), ((4, 3), ()), ((3,), (3,)), ((2, 4, 3), (3,)), ((1, 2, 4, 3), (1, 2, 3))],
)
def test_wrong_number_of_axes(keys: tuple[int, ...], query: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"wanted keys \(key, model\) with query \(model\).*got "):
        ch.selfish_attention(np.zeros(keys), np.zeros(query))


@pytest.mark.parametrize(("keys", "query"), [((4, 3), (5,)), ((2, 4, 3), (5, 3))])
def test_wrong_width_or_batch(keys: tuple[int, ...], query: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"same width and the same batch; got keys \(.*query \("):
        ch.selfish_attention(torch.zeros(keys), torch.zeros(query))


def test_no_keys() -> None:
    with pytest.raises(ShapeError, match=r"at least one key to mix; got keys \(0, 3\)"):
        ch.selfish_attention(np.zeros((0, 3)), np.zeros(3))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(bad: float) -> None:
    with pytest.raises(InputError, match=r"keys holds NaN or ±inf; every number must be finite"):
        ch.selfish_attention(np.array([[bad, 1.0]]), np.array([1.0, 0.0]))
    with pytest.raises(InputError, match=r"query holds NaN"):
        ch.selfish_attention(torch.ones(3, 2), torch.tensor([0.0, bad]))


@pytest.mark.parametrize(
    ("keys", "came"),
    [
        ([[1.0]], "list"),
        ("keys", "str"),
        (None, "NoneType"),
        (np.array([["a"]]), "<U1"),
        (np.array([[1j]]), "complex128"),
        (torch.tensor([[1j]]), "complex64"),
        (np.array([[None]]), "object"),
    ],
)
def test_what_is_neither_array_nor_tensor_of_reals(keys: Any, came: str) -> None:
    with pytest.raises(InputError, match=f"keys must be a NumPy array or a torch tensor.*{came}"):
        ch.selfish_attention(keys, np.zeros(1))
