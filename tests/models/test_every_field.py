"""Every field of every config class of transformers is read, harmless, or refused by name.

The classification is checked against transformers itself: a harmless field must not change its
logits, and what is read must give the logits that it gives.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import FAMILIES, Family, family_named, family_of
from clearhead.models.families.field_rules import REQUIRED, FieldRules
from tests.shared.config_fields import KINDS, Kind, other_value, their_fields
from tests.shared.tiny_models import assert_same

pytestmark = pytest.mark.usefixtures("quiet_transformers")


def family(kind: Kind) -> Family:
    return family_of({"model_type": kind.model_type})


def rules(kind: Kind) -> FieldRules:
    return family(kind).rules[kind.model_type]


def fields(sort: str, *names: str) -> list[tuple[str, str]]:
    """Each kind with each of its fields of one sort; only labels differ with the head."""
    found = []
    for name in names or KINDS:
        kind = KINDS[name]
        sorted_by = {"read": {**rules(kind).read, **rules(kind).aliases},
                     "harmless": rules(kind).harmless, "refused": rules(kind).refused}  # fmt: skip
        for field in sorted_by[sort]:
            if not name.endswith("-labels") or "label" in field or "classif" in field:
                found.append((name, field))
    return found


@cache
def base(name: str) -> tuple[Any, Tensor, ModelConfig]:
    """The tiny model itself: transformers' model, its logits, and our config."""
    kind = KINDS[name]
    model = kind.reference(kind.raw())
    return model, kind.theirs(model), family(kind).read(kind.raw())


@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_classified_once(name: str) -> None:
    kind = KINDS[name]
    sorts = (rules(kind).read, rules(kind).harmless, rules(kind).refused, rules(kind).aliases)
    for field in their_fields(kind):
        places = sum(field in sort for sort in sorts)
        assert places == 1, f"{kind.model_type}: {field} is classified {places} times"
    for reason in rules(kind).harmless.values():
        assert len(reason) > 5
    every = [field for sort in sorts for field in sort]
    assert len(every) == len(set(every))


def test_all_types_of_all_families_are_walked_over() -> None:
    types = {kind for name in FAMILIES for kind in family_named(name).model_types}
    assert types == {kind.model_type for kind in KINDS.values()} | {"clearhead"}
    ruled = {kind for name in FAMILIES for kind in family_named(name).rules}
    assert ruled == types - {"clearhead"}


SAID_BY_ANOTHER = {
    "num_labels": "id2label",
    "bart.id2label": "a classifier",
    "label2id": "id2label",
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_absent_has_the_default_of_transformers(name: str) -> None:
    kind = KINDS[name]
    default = kind.config_class()().to_dict()
    computed = {"architectures", "model_type", "rope_parameters", "layer_types", "id2label",
                "dense_act_fn", "is_gated_act", "scale_decoder_outputs"}  # fmt: skip
    filled = {"num_key_value_heads": ("llama",), "head_dim": ("llama", "mistral"),
              "sliding_window": ("qwen2", "qwen3"), "num_decoder_layers": ("t5",),
              "decoder_vocab_size": ("marian",)}  # fmt: skip
    for field, value in rules(kind).read.items():
        if value is REQUIRED or field not in default or field in computed:
            continue
        if kind.model_type not in filled.get(field, ()):
            assert value == default[field], field


SKIPPED = {"model_type", "architectures"}  # tested on their own
YARN = {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e3}}
SIDES = {f"{side}_{part}": f"{other}_{part}" for part in ("ffn_dim", "attention_heads")
         for side, other in (("encoder", "decoder"), ("decoder", "encoder"))}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    **{f"{name}.original_max_position_embeddings": YARN
       for name in ("llama", "mistral", "qwen2", "qwen3", "gemma2")},
    **{f"{name}.{field}": {other: other_value(other, name)}
       for name in ("bart", "marian") for field, other in SIDES.items()},
    **{f"{name}.num_attention_heads": {"decoder_attention_heads": 2}
       for name in ("bart", "marian")},
    "marian.decoder_vocab_size": {"vocab_size": 89},
    "marian.vocab_size": {"decoder_vocab_size": 89},
    "t5.is_gated_act": {"feed_forward_proj": "silu"},
}  # fmt: skip
# Fields that decide nothing by themselves for this head or beside this other field.
SILENT = {
    "bert.id2label", "bert.num_labels", "distilbert.id2label", "distilbert.num_labels",
    "bert.classifier_dropout", "distilbert.seq_classif_dropout",
    "marian.decoder_vocab_size", "mistral.layer_types", "llama.layer_types",
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), fields("read"))
def test_what_is_read_gives_transformers_logits(name: str, field: str, tmp_path: Path) -> None:
    if field in SKIPPED:
        return
    kind = KINDS[name]
    changes = {field: other_value(field, name)} | NEEDED.get(f"{name}.{field}", {})
    raw = kind.raw(**changes)
    needed = NEEDED.get(f"{name}.{field}", {})
    beside = kind.raw() if name in ("bart", "marian") else kind.raw(**needed)
    if f"{name}.{field}" not in SILENT:
        assert family(kind).read(raw) != family(kind).read(beside), f"{field} is not read"
    check_written(family(kind), family(kind).read(raw))
    theirs = kind.reference(raw)
    kind.save(theirs, raw, tmp_path)
    loaded = ch.load(tmp_path)
    assert loaded.unread == ()
    assert_same(loaded.model(*kind.inputs()), kind.theirs(theirs))


def check_written(family: Family, config: ModelConfig) -> None:
    """What was read is written, and nothing that we would not know again."""
    written = json.loads(json.dumps(family.write(config)))
    assert family.unread(written) == ()
    again = family.read(written)
    if again.tied:  # the rest is in the weights
        again = again.changed(tied=config.tied, shared_embedding=config.shared_embedding)
    assert again.resolved() == config.resolved()


ALONE = {
    "rope_scaling", "rope_theta", "original_max_position_embeddings", "rope_local_base_freq",
    "layer_types", "use_sliding_window", "max_window_layers", "num_labels", "dense_act_fn",
    "is_gated_act", "decoder_vocab_size", "tie_word_embeddings", "head_dim",
    "sliding_window_pattern",
    "share_encoder_decoder_embeddings", "n_inner",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_everything_that_is_read_is_saved_for_transformers(name: str, tmp_path: Path) -> None:
    """All settings at once but sizes, and but those that say the same as another one."""
    import transformers

    kind = KINDS[name]
    settings = [
        field
        for field, default in rules(kind).read.items()
        if default is not REQUIRED and field not in SKIPPED | ALONE | {"num_key_value_heads"}
    ]
    raw = kind.raw(**{field: other_value(field, name) for field in settings})
    theirs = kind.reference(raw)
    loaded = ch.load(kind.save(theirs, raw, tmp_path / "theirs"))
    wanted = kind.theirs(theirs)
    assert_same(loaded.model(*kind.inputs()), wanted)
    saved = ch.save(loaded.model, tmp_path / "ours")
    back = getattr(transformers, kind.model).from_pretrained(saved, attn_implementation="eager")
    assert_same(kind.theirs(back.eval()), wanted)
    assert ch.load(saved).config.resolved() == loaded.config.resolved()


def their_logits(name: str, changes: dict[str, Any]) -> Tensor:
    """transformers' logits with the tiny model's weights, and a config.json that was changed."""
    theirs = KINDS[name].reference(KINDS[name].raw(**changes))
    theirs.load_state_dict(base(name)[0].state_dict())
    return KINDS[name].theirs(theirs)


def same(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_harmless_changes_no_logit_of_transformers(name: str) -> None:
    """All of them at once; one by one only where that made a difference."""
    kind, (_, logits, config) = KINDS[name], base(name)
    changes = {field: other_value(field, name) for _, field in fields("harmless", name)}
    for field, value in changes.items():
        assert family(kind).read(kind.raw(**{field: value})) == config, field
    assert family(kind).unread(kind.raw(**changes)) == ()
    if not same(their_logits(name, changes), logits):
        alone = {
            field: same(their_logits(name, {field: changes[field]}), logits) for field in changes
        }
        raise AssertionError([field for field, harmless in alone.items() if not harmless])


@pytest.mark.parametrize(("name", "field"), fields("refused"))
def test_what_is_refused_is_refused_by_name(name: str, field: str) -> None:
    kind = KINDS[name]
    with pytest.raises(CheckpointError, match=rf"config.json: {field} is "):
        family(kind).read(kind.raw(**{field: other_value(field, name)}))
    for value in rules(kind).refused[field].harmless:
        assert family(kind).read(kind.raw(**{field: value})) == base(name)[2]
