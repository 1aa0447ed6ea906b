from __future__ import annotations

import pytest
import torch

from clearhead.errors import CheckpointError
from clearhead.models.families.family import (
    FAMILIES,
    MOST_LAYERS,
    Source,
    activation_named,
    attention_names,
    family_named,
    family_of,
    first_token,
    one_or_all,
    required,
    token_ids,
    window_marks,
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


def test_every_family_is_found_by_its_model_types() -> None:
    for name in FAMILIES:
        for model_type in family_named(name).model_types:
            assert family_of({"model_type": model_type}).name == name


def test_unknown_families() -> None:
    with pytest.raises(CheckpointError, match=r"there is no family 'mamba'; there are llama, gpt2"):
        family_named("mamba")
    with pytest.raises(CheckpointError, match=r"it is of model_type None.*\n.*qwen3, gpt2"):
        family_of({}, where="it")


def test_required_fields_names_all_that_are_missing() -> None:
    assert required({"a": 2, "b": 3}, "b", "a") == [3, 2]
    with pytest.raises(CheckpointError, match=r"lacks b, c\."):
        required({"a": 2, "b": None}, "a", "b", "c")


def test_window_marks_does_not_count_to_a_trillion() -> None:
    assert window_marks(5, lambda layer: layer >= 3) == (False, False, False, True, True)
    with pytest.raises(CheckpointError, match="no model has more than"):
        window_marks(MOST_LAYERS + 1, bool)


def test_ids_and_activations() -> None:
    assert (token_ids(None), token_ids(7), token_ids([7, 5])) == ((), (7,), (7, 5))
    assert (first_token([7, 5]), first_token(None)) == (7, None)
    assert (one_or_all((7, 5)), one_or_all((7,)), one_or_all(())) == ([7, 5], 7, None)
    assert activation_named("gelu_new") == "gelu_tanh"
    assert activation_named("unheard of") == "unheard of"


def test_names_of_projections() -> None:
    names = attention_names("a", "b.", "q k v o", bias=True, output_bias=False)
    assert names["a.key.bias"] == "b.k.bias"
    assert "a.output.bias" not in names
    assert len(names) == 7
    assert with_bias({"a": "b"}) == {"a.weight": "b.weight", "a.bias": "b.bias"}
