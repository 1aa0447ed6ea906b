"""The fast path gives the plain path's numbers, forward and backward, whatever the options."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import clearhead as ch
from clearhead.attention import blocks, fast, masks
from clearhead.attention.call import attention_call

TOLERANCE = {torch.float32: 6e-6, torch.float64: 1e-12, torch.bfloat16: 6e-2, torch.float16: 8e-3}
# queries, keys, heads, kv_heads, key_dim, value_dim
SQUARE = (5, 5, 2, 2, 7, 7)
GROUPED = (5, 7, 6, 3, 8, 3)
MULTI_QUERY = (7, 5, 4, 1, 3, 8)
ONE_QUERY = (1, 11, 6, 2, 8, 8)
SIZES = [SQUARE, GROUPED, MULTI_QUERY, ONE_QUERY]
LONGER = (61, 83, 2, 1, 8, 5)


def tensors(
    sizes: tuple[int, ...], dtype: torch.dtype = torch.float32, *, leading: tuple[int, ...] = (2,)
) -> tuple[Tensor, Tensor, Tensor]:
    queries, keys, heads, kv_heads, key_dim, value_dim = sizes
    query = torch.randn(*leading, heads, queries, key_dim)
    key = torch.randn(*leading, kv_heads, keys, key_dim)
    value = torch.randn(*leading, kv_heads, keys, value_dim)
    return tuple(part.to(dtype).requires_grad_() for part in (query, key, value))  # type: ignore[return-value]


def mask_of(kind: str, queries: int, keys: int) -> Any:
    if kind == "none":
        return None
    if kind == "tensor":
        return torch.rand(2, 1, queries, keys) > 0.4
    return masks.lengths(torch.tensor([keys - 2, keys - 1]))


def options_of(
    sizes: tuple[int, ...],
    dtype: torch.dtype,
    mask: str,
    bias: str,
    causal: bool,
    window: int | None,
    softcap: float | None,
    sinks: bool,
) -> dict[str, Any]:
    queries, keys, heads = sizes[:3]
    options: dict[str, Any] = {"causal": causal, "window": window, "softcap": softcap}
    options["mask"] = mask_of(mask, queries, keys)
    if bias != "none":
        learns = bias == "learns"
        options["bias"] = torch.randn(heads, queries, keys, dtype=dtype, requires_grad=learns)
    if sinks:
        options["sinks"] = torch.randn(heads, dtype=dtype, requires_grad=True)
    return options


def agree(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> None:
    """Forward with and without gradient, and backward to everything that learns."""
    tolerance = TOLERANCE[query.dtype]
    learning = [query, key, value]
    for name in ("bias", "sinks"):
        tensor = options.get(name)
        if tensor is not None and tensor.requires_grad:
            learning.append(tensor)
    plain = ch.attention_steps(query, key, value, **options).output
    quick = ch.attention(query, key, value, **options)
    with torch.no_grad():
        quicker = ch.attention(query, key, value, **options)
    arriving = torch.randn_like(plain)
    wanted = (plain, plain, *torch.autograd.grad(plain, learning, arriving))
    found = (quick, quicker, *torch.autograd.grad(quick, learning, arriving))
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        scale = 1 + want.abs().max().item() if want.numel() else 1.0
        torch.testing.assert_close(got, want, atol=tolerance * scale, rtol=0)


GRID = list(
    itertools.product(
        ("none", "tensor", "rule"),  # mask
        ("none", "fixed", "learns"),  # bias
        (False, True),  # causal
        (None, 3),  # window
        (None, 2.0),  # softcap
        (False, True),  # sinks
    )
)


pytestmark = pytest.mark.usefixtures("seeded")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that many blocks occur at sizes at which a test is quick."""
    monkeypatch.setattr(blocks, "SHORTEST_BLOCK", 2)
    monkeypatch.setattr(blocks, "LONGEST_BLOCK", 3)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_whole_grid_of_options(sizes: tuple[int, ...]) -> None:
    for row in GRID:
        agree(*tensors(sizes), **options_of(sizes, torch.float32, *row))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_part_of_the_grid_with_every_shape_checked(sizes: tuple[int, ...]) -> None:
    for row in GRID[::7]:
        agree(*tensors(sizes), **options_of(sizes, torch.float32, *row))


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked", "small_blocks")
@pytest.mark.parametrize("sizes", [GROUPED, MULTI_QUERY], ids=str)
def test_the_whole_grid_of_options_in_many_blocks(sizes: tuple[int, ...]) -> None:
    for row in GRID:
        agree(*tensors(sizes), **options_of(sizes, torch.float32, *row))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_precisions(dtype: torch.dtype) -> None:
    for number, row in enumerate(GRID):  # sizes take turns: every option meets every size
        sizes = SIZES[number % len(SIZES)]
        agree(*tensors(sizes, dtype), **options_of(sizes, dtype, *row))


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": 3}, {"softcap": 2.0}])
def test_any_leading_axes(leading: tuple[int, ...], options: dict[str, Any]) -> None:
    agree(*tensors(GROUPED, leading=leading), **options)


@pytest.mark.parametrize("rank", range(1, 6))
def test_masks_and_biases_with_fewer_axes_than_the_map(rank: int) -> None:
    whole = (2, 3, 6, 5, 7)
    query, key, value = tensors(GROUPED, leading=(2, 3))
    for shape in (whole[-rank:], tuple(1 if i % 2 else n for i, n in enumerate(whole[-rank:]))):
        agree(query, key, value, mask=torch.rand(shape) > 0.4, bias=torch.randn(shape))


def test_leading_axes_repeat_like_in_torch() -> None:
    query, key, value = tensors(GROUPED, leading=(3,))
    one_key = key[:1].detach().requires_grad_()
    agree(query, one_key, value, causal=True)
    found = ch.attention(query, one_key, value)
    torch.testing.assert_close(found, ch.attention(query, one_key.expand_as(key), value))


def test_a_single_map_without_heads() -> None:
    query, key, value = torch.randn(5, 3), torch.randn(7, 3), torch.randn(7, 2)
    found = ch.attention(query, key, value, causal=True)
    assert found.shape == (5, 2)
    with_axes = ch.attention(query[None, None], key[None, None], value[None, None], causal=True)
    assert found.equal(with_axes[0, 0])
    agree(query.requires_grad_(), key.requires_grad_(), value.requires_grad_(), window=2)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": 3}, {"softcap": 2.0}])
def test_memory_in_any_order(options: dict[str, Any]) -> None:
    """Columns side by side, every other number, repeated rows: the kernel must not misread them."""
    query, key, value = tensors((5, 7, 3, 3, 8, 8))
    for position in range(3):
        parts = [part.detach() for part in (query, key, value)]
        plain = parts[position]
        turned = plain.transpose(-1, -2).contiguous().transpose(-1, -2)
        spread = torch.stack([plain, plain], dim=-1).flatten(-2)[..., ::2]
        swapped = plain.transpose(1, 2).contiguous().transpose(1, 2)
        for other in (turned, spread, swapped):
            assert not other.is_contiguous()
            given = [part.clone() for part in parts]
            given[position] = other
            agree(*(part.requires_grad_() for part in given), **options)
    repeated = query.detach()[:, :1].expand(2, 3, 5, 8)
    expected = ch.attention(repeated.contiguous(), key, value, **options)
    torch.testing.assert_close(ch.attention(repeated, key, value, **options), expected)


def test_a_gradient_that_arrives_in_any_memory_order() -> None:
    query, key, value = tensors((5, 7, 3, 3, 8, 8))
    every: list[dict[str, Any]] = [{}, {"causal": True}, {"window": 3}, {"softcap": 2.0}]
    for options in every:
        for arriving in (torch.ones(()).expand(2, 3, 5, 8), torch.randn(2, 3, 8, 5).mT):
            quick, plain = (
                torch.autograd.grad(output, (query, key, value), arriving)
                for output in (
                    ch.attention(query, key, value, **options),
                    ch.attention_steps(query, key, value, **options).output,
                )
            )
            torch.testing.assert_close(quick, plain, atol=1e-5, rtol=1e-5)


def test_a_bias_in_any_memory_order() -> None:
    query, key, value = tensors((5, 7, 3, 3, 8, 8))
    for bias in (
        torch.randn(5, 7, 3).permute(2, 0, 1),
        torch.randn(3, 7, 5).mT,
        torch.randn(3, 1, 7).expand(3, 5, 7),
        torch.randn(3, 5, 14)[..., ::2],
    ):
        agree(query, key, value, bias=bias)
        agree(query, key, value, bias=bias, causal=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_float32_bias_is_not_rounded_to_half_precision(dtype: torch.dtype) -> None:
    query, key, value = tensors(LONGER, dtype)
    bias = torch.randn(2, 61, 83) * 30
    agree(query, key, value, bias=bias)
    agree(query, key, value, bias=bias, causal=True)


def test_a_bias_and_sinks_of_another_precision() -> None:
    query, key, value = tensors(GROUPED)
    bias, sinks = torch.randn(6, 5, 7).double(), torch.randn(6).double()
    agree(query, key, value, bias=bias, sinks=sinks)
    agree(query, key, value, bias=bias, sinks=sinks, softcap=2.0)


SDPA_CASES: list[tuple[tuple[int, ...], dict[str, Any], dict[str, Any]]] = [
    (SQUARE, {}, {}),
    (SQUARE, {"causal": True}, {"is_causal": True}),
    (GROUPED, {"scale": 0.3}, {"scale": 0.3, "enable_gqa": True}),
    (ONE_QUERY, {"causal": True}, {"enable_gqa": True}),
    (LONGER, {}, {"enable_gqa": True}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("sizes", "ours", "theirs"), SDPA_CASES, ids=str)
def test_agreement_with_torchs_function(
    sizes: tuple[int, ...], ours: dict[str, Any], theirs: dict[str, Any], dtype: torch.dtype
) -> None:
    query, key, value = tensors(sizes, dtype)
    found = ch.attention(query, key, value, **ours)
    wanted = functional.scaled_dot_product_attention(query, key, value, **theirs)
    torch.testing.assert_close(found, wanted, atol=TOLERANCE[dtype], rtol=0)


def test_agreement_with_torchs_function_under_a_mask_or_a_bias() -> None:
    query, key, value = tensors((5, 7, 3, 3, 8, 8))
    mask, bias = torch.rand(2, 1, 5, 7) > 0.4, torch.randn(3, 5, 7)
    sdpa = functional.scaled_dot_product_attention
    for found, wanted in (
        (ch.attention(query, key, value, mask=mask), sdpa(query, key, value, mask)),
        (ch.attention(query, key, value, bias=bias), sdpa(query, key, value, bias)),
    ):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_kernel_for_other_devices_gives_the_same(sizes: tuple[int, ...]) -> None:
    query, key, value = tensors(sizes)
    for mask, bias, causal, window in itertools.product(
        (None, "tensor", "rule", "nothing"), (None, "fixed"), (False, True), (None, 1, 3)
    ):
        seen = masks.causal(-99) if mask == "nothing" else mask_of(mask or "none", *sizes[:2])
        given = torch.randn(sizes[2], *sizes[:2]) if bias else None
        call = attention_call(query, key, value, seen, given, causal, window, None, None, None)
        plain = ch.attention_steps(
            query, key, value, mask=seen, bias=given, causal=causal, window=window
        )
        found = fast.portable(call)
        torch.testing.assert_close(found, plain.output, atol=2e-6, rtol=0)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"window": 2, "causal": True},
        {"softcap": 2.0},
        {"sinks": True},
        {"bias": True},
        {"sinks": True, "mask": torch.rand(1, 1, 5, 7) > 0.4},
        {"mask": torch.arange(5)[:, None].expand(5, 7) != 3},
    ],
    ids=lambda options: "+".join(options) or "plain",
)
@pytest.mark.parametrize("sizes", [(5, 7, 2, 1, 3, 2), (5, 7, 2, 2, 2, 3)], ids=str)
def test_gradcheck(sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    inputs = list(tensors(sizes, torch.float64, leading=(1,)))
    options = dict(options)
    learned = [name for name in ("bias", "sinks") if options.pop(name, False)]
    for name in learned:
        shape = (2,) if name == "sinks" else (2, 5, 7)
        inputs.append(torch.randn(shape, dtype=torch.float64, requires_grad=True))

    def function(query: Tensor, key: Tensor, value: Tensor, *more: Tensor) -> Tensor:
        extra = dict(zip(learned, more, strict=True))
        return ch.attention(query, key, value, **options, **extra)  # type: ignore[arg-type]

    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("sizes", "half"), [((5, 5, 2, 2, 3, 3), 0), ((3, 5, 4, 2, 3, 2), 1)], ids=str
)
def test_gradients_can_be_differentiated_again(sizes: tuple[int, ...], half: int) -> None:
    """Every combination of options, with one of two sizes; all combinations of any five with both.
    ``gradgradcheck`` compares with numerical differences in float64, in a random direction for
    each option (all directions would take minutes)."""
    options: tuple[tuple[Any, Any], ...] = (
        ("none", "rule"),
        ("none", "learns"),
        (False, True),
        (None, 2),
        (None, 2.0),
        (False, True),
    )
    for numbers in itertools.product((0, 1), repeat=len(options)):
        if sum(numbers) % 2 != half:
            continue
        row = [option[number] for option, number in zip(options, numbers, strict=True)]
        inputs = tensors(sizes, torch.float64, leading=(2,))
        chosen = options_of(sizes, torch.float64, *row)
        learning = [chosen[name] for name in ("bias", "sinks") if name in chosen]
        names = [name for name in ("bias", "sinks") if name in chosen]

        def function(*given: Tensor, chosen: Any = chosen, names: Any = names) -> Tensor:
            changed = chosen | dict(zip(names, given[3:], strict=True))
            return ch.attention(*given[:3], **changed)

        assert torch.autograd.gradgradcheck(
            function, (*inputs, *learning), nondet_tol=1e-9, fast_mode=True
        )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [17, 53, 211])
def test_second_derivatives_are_those_of_the_plain_steps(length: int, causal: bool) -> None:
    """In float32, at lengths that take the lean way and tiles."""
    states = torch.randn(1, 2, length, 8, requires_grad=True)
    sinks = torch.randn(2, requires_grad=True)
    for given in (None, sinks):
        found = []
        for function in (ch.attention, lambda *a, **o: ch.attention_steps(*a, **o).output):
            output = function(states, states, states, causal=causal, sinks=given)
            (first,) = torch.autograd.grad(output.square().sum(), states, create_graph=True)
            wanted = [states] if given is None else [states, sinks]
            found.append(torch.autograd.grad(first.square().sum(), wanted))
        for got, want in zip(*found, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3 * float(want.abs().max()))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0, 0.0, -0.7, -1])
def test_scales_of_0_and_below(scale: float, dtype: torch.dtype) -> None:
    for sizes in (SQUARE, (53, 53, 2, 2, 8, 8), (211, 211, 2, 2, 8, 8), (1, 300, 2, 2, 8, 8)):
        for options in ({}, {"causal": True}, {"causal": True, "window": 3}, {"softcap": 2.0}):
            agree(*tensors(sizes, dtype), scale=scale, **options)


def test_queries_before_all_keys_with_a_bias() -> None:
    """12 queries at the end of 3 keys: the first nine see nothing."""
    agree(*tensors((12, 3, 1, 1, 8, 8)), causal=True, bias=torch.zeros(1, 3))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("queries", [1, 53, 211])
def test_a_traced_call_is_no_constant(queries: int) -> None:
    keys = max(300, queries)
    example = tuple(part.detach() for part in tensors((queries, keys, 2, 2, 8, 8)))
    traced = torch.jit.trace(  # type: ignore[no-untyped-call]
        lambda query, key, value: ch.attention(query, key, value, causal=True), example
    )
    other = tuple(part.detach() for part in tensors((queries, keys, 2, 2, 8, 8)))
    torch.testing.assert_close(traced(*other), ch.attention(*other, causal=True))


@pytest.mark.parametrize("sizes", [(0, 7), (5, 0), (0, 0), (1, 0)], ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"window": 2}, {"softcap": 2.0}, {"sinks": torch.zeros(3)}],
    ids=lambda options: "+".join(options) or "plain",
)
def test_no_queries_or_no_keys(sizes: tuple[int, int], options: dict[str, Any]) -> None:
    query, key, value = tensors((*sizes, 3, 3, 8, 2))
    output = ch.attention(query, key, value, **options)
    assert output.shape == (2, 3, sizes[0], 2)
    assert not output.any()
    output.sum().backward()  # type: ignore[no-untyped-call]
    assert all(part.grad is not None and not part.grad.any() for part in (query, key, value))


def test_an_empty_batch_and_empty_values() -> None:
    assert ch.attention(*tensors(GROUPED, leading=(0,)), causal=True).shape == (0, 6, 5, 3)
    assert ch.attention(*tensors((5, 7, 6, 3, 8, 0))).shape == (2, 6, 5, 0)


def test_a_rule_that_leaves_no_key_in_reach() -> None:
    for queries in (1, 5):
        query, key, value = tensors((queries, 7, 3, 3, 8, 8))
        for mask in (masks.causal(offset=-queries), masks.window(1, 1, offset=50)):
            agree(query, key, value, mask=mask)
            assert not ch.attention(query, key, value, mask=mask).any()


def test_keys_out_of_reach_are_never_multiplied() -> None:
    """NaN behind the window would show if they were."""
    query, key, value = (part.detach() for part in tensors((1, 300, 2, 2, 8, 8)))
    key[:, :, :200], value[:, :, :200] = torch.nan, torch.nan
    found = ch.attention(query, key, value, causal=True, window=100)
    torch.testing.assert_close(found, ch.attention(query, key[:, :, 200:], value[:, :, 200:]))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own jvp uses it
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap has no rule for flash
@pytest.mark.parametrize("tokens", [7, 200])
@pytest.mark.parametrize("options", [{}, {"causal": True, "window": 5}, {"softcap": 2.0}], ids=str)
def test_torch_may_transform_it(tokens: int, options: dict[str, Any]) -> None:
    """vmap, jvp and grad of torch.func, against the plain steps."""
    torch.manual_seed(tokens)
    query, key, value, ahead = torch.randn(4, 2, 3, tokens, 8)

    def fast(asks: Tensor) -> Tensor:
        return ch.attention(asks, key, value, **options)

    def plain(asks: Tensor) -> Tensor:
        return ch.attention_steps(asks, key, value, **options).output

    def one(asks: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return ch.attention(asks, keys, values, **options)

    wanted = plain(query)
    slopes = torch.func.jvp(plain, (query,), (ahead,)), torch.func.jvp(fast, (query,), (ahead,))
    torch.testing.assert_close(*slopes, atol=1e-5, rtol=0)
    with torch.no_grad():
        each = torch.func.vmap(one)(query, key, value)
    torch.testing.assert_close(each, wanted, atol=1e-5, rtol=0)
    by_query = torch.func.grad(lambda asks: (fast(asks) * ahead).sum())(query)
    by_plain = torch.func.grad(lambda asks: (plain(asks) * ahead).sum())(query)
    torch.testing.assert_close(by_query, by_plain, atol=1e-5, rtol=0)
