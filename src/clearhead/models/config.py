"""``ModelConfig``: one description for every family; a preset lists only what differs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from clearhead.arguments import one_of, shown, whole_number
from clearhead.attention.rotary import Rotary, RotaryScaling
from clearhead.errors import ConfigError
from clearhead.layers.block import NormPlace
from clearhead.layers.feed_forward import Activation
from clearhead.models.config_checks import SCALED, check_config
from clearhead.models.scalings import scaling_fields, scaling_of

Kind: TypeAlias = Literal["encoder", "decoder", "encoder-decoder"]
Positions: TypeAlias = Literal[
    "learned", "sinusoidal", "sinusoidal-halves", "rotary", "alibi", "relative", "none"
]
Head: TypeAlias = Literal["language", "masked", "embedding", "classification", "none"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A transformer, completely described. Sizes are named as in ``clearhead.axes``.

    Required are ``kind``, ``vocab``, ``context`` (length in tokens), ``model`` (width), ``layers``,
    ``heads`` and ``feed_forward`` (width of the hidden layer). Every other field has a default.

    ``layers`` counts the decoder's blocks of an encoder-decoder, whose encoder has
    ``encoder_layers``; of the others, simply the blocks. ``window`` holds for the layers that
    ``window_layers`` marks (all of them without it); marked layers rotate with
    ``window_rotary_base`` and ``window_rotary_scaling`` if there is such a base. ``tied``: the
    output matrix is the (decoder's) token embedding. ``shared_embedding``: encoder and decoder
    have one token embedding.

    ``dropout`` is that of the residuals. Attention and embedding take it too unless they have
    their own; ``activation_dropout`` is inside the feed-forward, ``head_dropout`` before labels.

    Raises:
        ConfigError: a field has a wrong type or value, or fields contradict each other.

    >>> config = ModelConfig(
    ...     kind="decoder", vocab=97, context=64, model=24, layers=2, heads=3, feed_forward=48
    ... )
    >>> config.head_width
    8
    >>> config.changed(layers=0)
    Traceback (most recent call last):
    clearhead.errors.ConfigError: layers must be 1 or more; got 0.
    """

    kind: Kind
    family: str = "clearhead"
    head: Head = "language"
    vocab: int
    context: int
    # sizes
    model: int
    layers: int
    encoder_layers: int | None = None
    heads: int
    kv_heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None
    feed_forward: int
    labels: int = 0
    label_names: tuple[str, ...] = ()  # none, or one for each label
    classifier: Literal["tanh", "relu"] = "tanh"
    segments: int = 0
    # positions
    positions: Positions = "rotary"
    position_offset: int = 0
    rotary_width: int | None = None
    rotary_base: float = 10_000.0
    rotary_scaling: RotaryScaling | None = None
    window_rotary_base: float | None = None
    window_rotary_scaling: RotaryScaling | None = None
    relative_buckets: int = 32
    relative_distance: int = 128
    # attention
    attention_bias: bool = False
    attention_output_bias: bool = False
    attention_scale: float | None = None
    attention_norm: bool = False
    attention_softcap: float | None = None
    sinks: bool = False
    window: int | None = None
    window_layers: tuple[bool, ...] | None = None
    # feed-forward
    activation: Activation = "silu"
    gated: bool = False
    feed_forward_bias: bool = False
    # normalisation
    norm: Literal["layer", "rms"] = "rms"
    norm_place: NormPlace = "before"
    norm_epsilon: float = 1e-5
    norm_offset: bool = False
    embedding_norm: bool = False
    # embeddings and output
    embedding_scale: float = 1.0
    embedding_unit: bool = True  # sentence embeddings are brought to length 1
    tied: bool = True
    shared_embedding: bool = True
    output_scale: float = 1.0
    output_bias: bool = False
    output_softcap: float | None = None
    # training
    dropout: float = 0.0
    attention_dropout: float | None = None
    embedding_dropout: float | None = None
    activation_dropout: float = 0.0
    head_dropout: float = 0.0
    # tokens with a meaning
    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None
    start: int | None = None  # the first token of an encoder-decoder's output

    def __post_init__(self) -> None:
        check_config(self)

    @property
    def rotary(self) -> Rotary | None:
        """The rotary positions of most layers; None without rotary positions."""
        return self._rotary(self.rotary_base, self.rotary_scaling)

    @property
    def head_width(self) -> int:
        """The width of one head's keys: ``key_dim``, or the model's width divided by the heads."""
        return self.model // self.heads if self.key_dim is None else self.key_dim

    @property
    def longest_text(self) -> int | None:
        """The context length that the positions are made for; None where any length works."""
        return None if self.positions in ("relative", "alibi", "none") else self.context

    def windowed(self, layer: int) -> bool:
        """Return whether this layer attends within a window only."""
        whole_number("layer", layer, least=0, most=self._most_layers - 1)
        if self.window is None:
            return False
        return self.window_layers is None or self.window_layers[layer]

    def rotary_of(self, layer: int) -> Rotary | None:
        """Return the rotary positions of this layer; None without rotary positions."""
        whole_number("layer", layer, least=0, most=self._most_layers - 1)
        if self.window_rotary_base is not None and self.windowed(layer):
            return self._rotary(self.window_rotary_base, self.window_rotary_scaling)
        return self.rotary

    @property
    def _most_layers(self) -> int:
        return max(self.layers, self.encoder_layers or 0)

    def _rotary(self, base: float, scaling: RotaryScaling | None) -> Rotary | None:
        if self.positions != "rotary":
            return None
        return Rotary(self.rotary_width or self.head_width, base, "halves", scaling)

    def dropout_of(self, part: Literal["attention", "embedding"]) -> float:
        """The dropout of a part that may have its own."""
        one_of("part", part, ("attention", "embedding"))
        own: float | None = getattr(self, f"{part}_dropout")
        return self.dropout if own is None else own

    def changed(self, **fields: Any) -> ModelConfig:
        """Return a copy of this config with some fields changed."""
        _refuse_unknown(fields)
        return dataclasses.replace(self, **fields)

    def resolved(self) -> ModelConfig:
        """Return the same config with its defaults spelled out: equal models have equal ones.

        Labels that are only numbered have no name.
        """
        windows = self.window_layers
        if self.window is not None and self.encoder_layers in (None, self.layers):
            windows = tuple(self.windowed(layer) for layer in range(self.layers))
        return self.changed(
            kv_heads=self.kv_heads or self.heads,
            key_dim=self.head_width,
            value_dim=self.value_dim or self.head_width,
            rotary_width=(self.rotary_width or self.head_width) if self.rotary else None,
            attention_scale=self.attention_scale or self.head_width**-0.5,
            attention_dropout=self.dropout_of("attention"),
            embedding_dropout=self.dropout_of("embedding"),
            window_layers=windows,
            label_names=() if self.label_names == self._numbered_labels() else self.label_names,
        )

    def _numbered_labels(self) -> tuple[str, ...]:
        return tuple(f"LABEL_{number}" for number in range(len(self.label_names)))

    def to_json(self) -> str:
        """Return the config as JSON text; fields that have their default are left out."""
        fields = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if field.name in SCALED:
                value = scaling_fields(value)
            fields[field.name] = value
        return json.dumps(fields, indent=2)

    @classmethod
    def from_json(cls, text: str) -> ModelConfig:
        """Return the config that :meth:`to_json` wrote."""
        if not isinstance(text, str | bytes):
            raise ConfigError(f"text must be JSON, as a string; got {shown(text)}.")
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the text of a model description is not JSON: {error}.") from None
        if not isinstance(fields, dict):
            raise ConfigError(
                f"the model description must be a JSON object; got {type(fields).__name__}."
            )
        return cls.from_fields(fields)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ModelConfig:
        """Return the config from plain JSON values."""
        if not isinstance(fields, Mapping):
            raise ConfigError(f"fields must be a dict of a model's fields; got {shown(fields)}.")
        _refuse_unknown(fields)
        fields = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
        for name in SCALED:
            if fields.get(name) is not None:
                fields[name] = scaling_of(fields[name])
        try:
            return cls(**fields)
        except TypeError as error:
            raise ConfigError(f"the model description is incomplete: {error}.") from None


def _refuse_unknown(fields: Mapping[str, Any]) -> None:
    known = {field.name for field in dataclasses.fields(ModelConfig)}
    unknown = sorted(map(str, set(fields) - known))
    if unknown:
        raise ConfigError(
            f"a model has no {', '.join(unknown)}.", hint=f"fields: {', '.join(sorted(known))}"
        )
