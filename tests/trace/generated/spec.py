"""The dimensions of a generated attention: one choice in each makes a :class:`Spec`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

THREE_AXES = ("(b h) n d", "(h b) n d", "n (b h) d")
FUSED = ("sdpa", "sdpa alias", "sdpa helper", "sdpa imported")
WHOLE = (
    "nn.MultiheadAttention",
    "nn.MultiheadAttention, weights",
    "F.multi_head_attention_forward",
    "nn.TransformerEncoderLayer",
)
CACHES = ("cat", "index, whole", "index, slice", "ring", "crop")

DIMENSIONS: dict[str, tuple[Any, ...]] = {
    "layout": (
        "b h n d", *THREE_AXES, "b n h d", "b n h d → h b", "one module per head",
        "b (n h) d", "b (h n) d", "windows", "grouped 5-D", "grouped", "latents",
    ),
    "product": (
        "matmul", "@", "bmm", "baddbmm", "einsum", "einsum …", "keys first", "values first",
    ),
    "softmax": (
        "F.softmax", "torch.softmax", "tensor.softmax", "nn.Softmax", "exp/sum", "exp/sum − max",
        "exp2/sum", "exp − lse", "nan_to_num", "log_softmax.exp", "upcast", "tanh cap", "clamp",
        "temperature",
        "talking before", "talking after", "differential", "off by one",
        *FUSED, *WHOLE, "flex_attention",
    ),
    "projection": ("separate", "fused", "bias", "rotary", "qk-norm"),
    "pattern": (
        "none", "causal", "left padding", "right padding", "causal + left padding",
        "blind rows", "scattered",
    ),
    "hidden by": ("bool", "−inf", "−1e9", "−1e4", "−65504", "finfo.min", "mixed", "−inf + ALiBi"),
    "mask step": (
        "add", "masked_fill", "masked_fill_", "where", "assign scores", "assign mask", "is_causal",
    ),
    "mask axes": (2, 3, 4),
    "scale": ("query", "key", "both", "scores ·", "scores /", "none"),
    "cache": ("none", "none", "none", *CACHES),
    "dtype": ("float32", "float32", "float32", "float64", "bfloat16", "float16"),
    "autocast": (False, False, False, True),
    "mode": ("eval", "eval", "train", "train, dropout"),
    "gradient": ("grad", "no_grad", "inference_mode"),
    "transform": ("none", "none", "none", "none", "vmap", "grad", "jvp"),
    "kind": ("self", "self", "cross"),
    "batch": (1, 2, 3),
    "sizes": ("primes", "primes", "equal"),
    "value width": ("same", "other"),
    "scores": ("usual", "usual", "large"),
    "class": ("Attention", "MHSA", "SelfAtt", "MultiHead", "RotaryAttention", "Mixer", "Block"),
    "declares": ("num_heads", "n_head", "heads", "nothing"),
    "call": ("module", "module", "forward"),
    "layers": ("one", "two", "one, twice"),
    "later": ("nothing", "nothing", "query zeroed", "key scaled", "output scaled"),
    "values": (False, False, True),
}  # fmt: skip
"""Each dimension with its choices; a choice that stands several times is drawn more often."""

Narrowed: TypeAlias = Sequence[tuple[str, Sequence[Any]]]
"""Fields of a spec, each with the choices that are wanted of it."""


@dataclass(frozen=True)
class Spec:
    """One generated attention: everything that decides what it computes."""

    layout: str = "b h n d"
    product: str = "matmul"
    softmax: str = "F.softmax"
    projection: str = "separate"
    pattern: str = "none"
    hidden_by: str = "−inf"
    mask_step: str = "add"
    mask_axes: int = 4
    scale: str = "scores ·"
    cache: str = "none"
    dtype: str = "float32"
    autocast: bool = False
    mode: str = "eval"
    gradient: str = "no_grad"
    transform: str = "none"
    kind: str = "self"
    batch: int = 2
    sizes: str = "primes"
    value_width: str = "same"
    scores: str = "usual"
    class_: str = "Attention"
    declares: str = "num_heads"
    call: str = "module"
    layers: str = "one"
    later: str = "nothing"
    values: bool = False
    seed: int = 0

    def __str__(self) -> str:
        """Only what differs from the simplest attention, as code that makes it again."""
        plain = asdict(Spec())
        given = {name: value for name, value in asdict(self).items() if value != plain[name]}
        return f"Spec({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def fused(self) -> bool:
        """True if torch's sdpa computes it, called in whatever way."""
        return self.softmax in FUSED

    @property
    def whole(self) -> bool:
        """True if a module or function of torch computes it with its projections."""
        return self.softmax in WHOLE

    @property
    def ordinary(self) -> bool:
        """True if it is attention as most models write it: this has to be seen, not only named."""
        softmaxes = ("F.softmax", "torch.softmax", "tensor.softmax", "nn.Softmax", "upcast")
        return (
            self.layout in ("b h n d", "b n h d", "grouped")
            and (self.softmax in (*softmaxes, *FUSED, *WHOLE))
            and self.product not in ("keys first", "values first")
            and self.hidden_by != "mixed"
            and self.mask_step != "assign scores"
            and self.cache in ("none", "cat")
            and self.transform == "none"
            and self.later == "nothing"
            and self.call == "module"
        )


def field_of(dimension: str) -> str:
    """The name of a dimension's field in :class:`Spec`."""
    name = dimension.replace(" ", "_")
    return "class_" if name == "class" else name


def sampled(seed: int, number: int, only: Narrowed = ()) -> Spec:
    """The attention of this number: the same whenever it is asked for.

    ``only`` holds fields with the choices that are wanted of them.
    """
    chance = random.Random(f"{seed}/{number}")
    drawn = {field_of(name): chance.choice(choices) for name, choices in DIMENSIONS.items()}
    spec = Spec(**drawn, seed=chance.randrange(1 << 30))
    return possible(replace(spec, **{field: chance.choice(choices) for field, choices in only}))


def possible(spec: Spec) -> Spec:
    """The nearest attention that torch can compute: choices that exclude one another give way."""
    for rule in (_whole, _flex, _layout, _softmax, _mask, _numbers, _mode, _transform):
        spec = rule(spec)
    return spec


def _whole(spec: Spec) -> Spec:
    if not spec.whole:
        return spec
    cross = spec.kind if spec.softmax.startswith("nn.Multi") else "self"
    step = "is_causal" if spec.pattern == "causal" and spec.mask_step == "is_causal" else "add"
    pattern = spec.pattern
    if spec.softmax in WHOLE[2:] and pattern not in ("none", "causal", "right padding"):
        pattern = "right padding"
    call = "module" if spec.call == "module" else "forward"
    projection = "bias" if spec.projection == "bias" else "fused"
    hidden = "bool" if spec.hidden_by not in ("−inf", "bool") else spec.hidden_by
    return replace(
        spec, layout="b h n d", product="matmul", projection=projection, scale="none",
        cache="none", kind=cross, value_width="same", mask_step=step, hidden_by=hidden,
        later="nothing", pattern=pattern, call=call, class_="Attention", declares="nothing",
        transform="none",
    )  # fmt: skip


def _flex(spec: Spec) -> Spec:
    if spec.softmax != "flex_attention":
        return spec
    pattern = spec.pattern if spec.pattern in ("none", "causal", "scattered") else "none"
    return replace(
        spec, layout="b h n d", cache="none", pattern=pattern, hidden_by="bool", mask_step="add",
        value_width="same", gradient="no_grad", mode="eval", transform="none", scale="none",
        later="nothing", dtype="float32", autocast=False, mask_axes=4,
    )  # fmt: skip


def _layout(spec: Spec) -> Spec:
    layout, product = spec.layout, spec.product
    if spec.softmax.startswith("talking") and layout != "b n h d":
        layout = "b h n d"
    if spec.softmax == "differential":
        layout = "b h n d"
    if spec.fused and layout.startswith("b n h d"):
        layout = "b h n d"
    if layout.startswith("b n h d"):
        product = "einsum"
    three = (*THREE_AXES, "one module per head", "b (n h) d", "b (h n) d")
    if product in ("bmm", "baddbmm") and layout not in three:
        product = "matmul"
    if product == "einsum" and layout in ("windows", "grouped 5-D", "latents"):
        product = "einsum …"
    kind = "cross" if layout == "latents" else spec.kind
    cache = "none" if layout in ("windows", "latents") or kind == "cross" else spec.cache
    layers = "one" if layout == "latents" else spec.layers
    return replace(spec, layout=layout, product=product, kind=kind, cache=cache, layers=layers)


def _softmax(spec: Spec) -> Spec:
    scale, later = spec.scale, spec.later
    if spec.fused and scale.startswith("scores"):
        scale = "none"
    if spec.product == "baddbmm" and scale == "scores /":
        scale = "scores ·"
    width = "same" if spec.softmax == "differential" else spec.value_width
    return replace(spec, scale=scale, later=later, value_width=width)


def _mask(spec: Spec) -> Spec:
    pattern, hidden, step, axes = spec.pattern, spec.hidden_by, spec.mask_step, spec.mask_axes
    if spec.cache != "none" and pattern != "causal + left padding":
        pattern = "causal"
    if spec.kind == "cross" and pattern.startswith("causal"):
        pattern = "left padding" if "left" in pattern else "none"
    if "padding" in pattern:
        axes = 4  # it differs between the sequences of a batch
    if step == "is_causal" and not (
        (spec.fused or spec.whole) and pattern == "causal" and hidden in ("−inf", "bool")
    ):
        step = "add"
    if spec.fused and step not in ("is_causal", "assign mask"):
        step = "add"
    if step in ("masked_fill", "masked_fill_", "where", "assign scores") and hidden in (
        "bool", "mixed", "−inf + ALiBi",
    ):  # fmt: skip
        hidden = "−inf" if hidden != "mixed" else "finfo.min"
    if not spec.fused and not spec.whole and spec.softmax != "flex_attention":
        hidden = "−inf" if hidden == "bool" else hidden
    if spec.softmax in ("exp/sum", "exp − lse", "clamp") and hidden not in ("−inf", "−inf + ALiBi"):
        hidden = "−inf"  # the others would be clamped, or overflow
    if pattern == "none":
        hidden, step = "−inf", "add"
    if step in ("masked_fill_", "assign scores") and spec.gradient == "grad":
        step = "masked_fill"
    return replace(spec, pattern=pattern, hidden_by=hidden, mask_step=step, mask_axes=axes)


def _numbers(spec: Spec) -> Spec:
    dtype, hidden, scores = spec.dtype, spec.hidden_by, spec.scores
    autocast = spec.autocast and dtype == "float32"
    half = autocast or dtype in ("bfloat16", "float16")
    if half or spec.softmax in ("exp/sum", "exp − lse", "off by one"):
        scores = "usual"  # rounding would decide over the weights; exp would overflow
    if dtype == "float16" and spec.softmax in ("exp/sum", "off by one"):
        dtype = "bfloat16"
    if dtype == "float16" and hidden in ("−1e9", "mixed"):
        hidden = "−65504"  # torch refuses −1e9
    return replace(spec, dtype=dtype, hidden_by=hidden, autocast=autocast, scores=scores)


def _mode(spec: Spec) -> Spec:
    gradient, later, mode = spec.gradient, spec.later, spec.mode
    if later != "nothing" and gradient == "grad":
        later = "nothing"  # autograd refuses
    if spec.cache.startswith(("index", "ring")) and gradient == "grad":
        gradient = "no_grad"
    if later != "nothing" and (spec.cache != "none" or spec.layers == "one, twice"):
        later = "nothing"
    if spec.layout == "one module per head":
        later = "nothing"
    return replace(spec, gradient=gradient, later=later, mode=mode)


def _transform(spec: Spec) -> Spec:
    transform = spec.transform
    in_place = spec.mask_step in ("masked_fill_", "assign scores") or spec.later != "nothing"
    if transform != "none" and (
        spec.cache != "none" or in_place or spec.mode == "train, dropout" or spec.autocast
    ):
        transform = "none"
    if transform != "none" and (spec.layout == "latents" or spec.softmax == "flex_attention"):
        transform = "none"
    if transform in ("grad", "jvp"):
        spec = replace(spec, gradient="grad")
        if transform == "jvp" and (spec.fused or spec.dtype not in ("float32", "float64")):
            transform = "grad"  # flash attention has no forward-mode derivative
    if transform == "vmap" and (
        spec.batch == 1 or "padding" in spec.pattern or spec.layout == "windows"
    ):
        transform = "none"
    return replace(spec, transform=transform)
