from __future__ import annotations

import json

import pytest
import torch

from clearhead.errors import CheckpointError
from clearhead.models.config import Head, Kind, ModelConfig
from clearhead.models.config_checks import DROPOUTS
from clearhead.models.families.family import (
    FAMILIES,
    OWN_DROPOUTS,
    Source,
    attention_names,
    family_named,
    family_of,
    with_bias,
)


def test_a_part_of_a_transposed_matrix_and_back() -> None:
    theirs = torch.arange(5.0 * 6).reshape(5, 6)  # in 5, out 3 * 2
    sources = [Source("a", part, 3, transposed=True) for part in range(3)]
    parts = [source.take(theirs) for source in sources]
    assert torch.equal(parts[1], theirs[:, 2:4].T)
    assert parts[1].data_ptr() == theirs[:, 2:].data_ptr()  # a view
    assert torch.equal(sources[0].give(parts), theirs)


def test_rows_pairs_and_shifts() -> None:
    assert torch.equal(Source("a", row=True).take(torch.ones(1, 3)), torch.ones(3))
    assert torch.equal(Source("a", row=True).give([torch.ones(3)]), torch.ones(1, 3))
    assert torch.equal(Source("a", shift=-1.0).take(torch.ones(3)), torch.zeros(3))
    rows = torch.arange(8.0)[:, None]  # two heads of four rows
    taken = Source("a", paired_heads=2).take(rows).flatten().tolist()
    assert taken == [0, 2, 1, 3, 4, 6, 5, 7]


def test_spellings_with_and_without_the_prefix_and_old_endings() -> None:
    spelled = list(family_named("bert").spellings("bert.x.LayerNorm.weight"))
    assert spelled == [
        "bert.x.LayerNorm.weight", "bert.x.LayerNorm.gamma", "x.LayerNorm.weight",
        "x.LayerNorm.gamma",
    ]  # fmt: skip


def test_a_tensor_may_lie_in_several_places() -> None:
    places = family_named("bart").places(Source("a.weight", search=("b.weight", "model.c.weight")))
    assert list(dict.fromkeys(places)) == ["b.weight", "model.c.weight", "c.weight"]


def test_rules_belong_to_the_model_type() -> None:
    llama = family_named("llama")
    assert llama.unread({"model_type": "mistral", "mlp_bias": True, "colour": 3}) == ("colour",)
    with pytest.raises(CheckpointError, match=r"config.json: use_mrope is True: rotation by sever"):
        llama.read({"model_type": "llama", "use_mrope": True})
    assert family_named("clearhead").unread({"anything": 1}) == ()  # it refuses, when it reads


def test_every_family_is_found_by_its_model_types() -> None:
    for name in FAMILIES:
        for model_type in family_named(name).model_types:
            assert family_of({"model_type": model_type}).name == name


def test_unknown_families() -> None:
    with pytest.raises(CheckpointError, match=r"there is no family 'mamba'; there are llama, gpt2"):
        family_named("mamba")
    with pytest.raises(CheckpointError, match=r"it is of model_type None.*\n.*qwen3, gpt2"):
        family_of({}, where="it")


def test_names_of_projections() -> None:
    names = attention_names("a", "b.", "q k v o", bias=True, output_bias=False)
    assert names["a.key.bias"] == "b.k.bias"
    assert "a.output.bias" not in names
    assert len(names) == 7
    assert with_bias({"a": "b"}) == {"a.weight": "b.weight", "a.bias": "b.bias"}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_dropout_survives_in_every_family(name: str) -> None:
    """What a family's config.json cannot say is in a field of our own."""
    family = family_named(name)
    both = name in ("t5", "bart")
    kind: Kind = "encoder-decoder" if both else "encoder" if "bert" in name else "decoder"
    base = family.read(family.write(_config(name, kind)))
    for number, field in enumerate(DROPOUTS, start=1):
        if field == "head_dropout" and base.head != "classification":
            continue
        config = base.changed(**{field: number / 16})
        fields = json.loads(json.dumps(family.fields_of(config)))
        assert family.read(fields).resolved() == config.resolved(), field
        assert OWN_DROPOUTS not in family.unread(fields)
    with pytest.raises(CheckpointError, match="clearhead_dropout must hold dropout"):
        family.read(family.write(base) | {OWN_DROPOUTS: {"layers": 3}})


def _config(name: str, kind: Kind) -> ModelConfig:
    """A config that the family can write, of any sizes."""
    head: Head = "masked" if kind == "encoder" else "language"
    return ModelConfig(
        kind=kind, family=name, head=head, vocab=31, context=17, model=12, layers=2, heads=3,
        feed_forward=5, encoder_layers=2 if kind == "encoder-decoder" else None, segments=2,
        positions={"llama": "rotary", "gemma": "rotary", "t5": "relative",
                   "clearhead": "rotary"}.get(name, "learned"),  # type: ignore[arg-type]
        norm="rms" if name in ("llama", "gemma", "t5", "clearhead") else "layer",
        gated=name in ("llama", "gemma"),
    )  # fmt: skip
