"""No option is ignored: every field of a model and of its training changes the run, or is refused.
The walks go over all fields, so that a new one has to be classified here."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import ClearheadError, ConfigError, InputError
from clearhead.models.config_checks import DROPOUTS
from clearhead.text.characters import CharacterTokenizer
from clearhead.training.data.batches.batch import Batch
from clearhead.training.events import Stepped, Validated
from clearhead.training.initialisation import fresh_model
from clearhead.training.loop import train_task
from clearhead.training.objectives import objective_of
from clearhead.training.options import check_begin, check_fields, check_used, resumed
from clearhead.training.plan import MODEL_FIELDS, SETTING_FIELDS, Plan
from clearhead.training.prepare import prepare
from clearhead.training.random_seed import seeded_for
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import language_config
from clearhead.training.tasks.task import Task
from tests.training.conftest import SETTINGS, SMALL

CONFIG = language_config("tiny", 11, layers=3)
BEGUN = Plan(
    texts=("/a.txt",), size="small", model={"layers": 3},
    settings=dataclasses.asdict(TrainingSettings(steps=7, seed=5)), fingerprint="f",
)  # fmt: skip
FIELDS = dataclasses.asdict(CONFIG)


def test_a_misplaced_field_is_sent_to_its_place() -> None:
    check_fields({"layers": 3}, {"clip": 0.5})
    with pytest.raises(ConfigError, match="model has no field clip") as error:
        check_fields({"clip": 0.5}, {})
    assert error.value.hint == "it belongs into settings."
    with pytest.raises(ConfigError, match="settings has no field colour") as error:
        check_fields({}, {"colour": 1})
    assert error.value.hint is not None and "batch_tokens" in error.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", "small"), ("tokenizer", "bpe"), ("vocabulary", 300), ("model", {"layers": 3})],
)
def test_a_model_that_is_trained_further_keeps_its_shape(name: str, value: object) -> None:
    check_begin({"start_from": "smollm2", "texts": ("/a.txt",)})
    check_begin({name: value})
    shown = "layers" if name == "model" else name
    with pytest.raises(InputError, match=rf"keeps its shape .*: {shown} is for a new model"):
        check_begin({"start_from": "smollm2", name: value})


def test_dropouts_may_change_and_adapters_need_a_model() -> None:
    dropouts = dict.fromkeys(set(DROPOUTS) - {"head_dropout"}, 0.1)
    check_begin({"start_from": "smollm2", "model": dropouts})
    with pytest.raises(InputError, match=r"keeps its shape .*: layers is for a new model"):
        check_begin({"start_from": "smollm2", "model": dropouts | {"layers": 3}})
    check_begin({"start_from": "smollm2", "settings": {"lora": 2}})
    with pytest.raises(InputError, match="are for a model that was trained before"):
        check_begin({"settings": {"lora": 2}})


# What a model field becomes, and whatever else it needs.
CHANGED: dict[str, dict[str, Any]] = {
    "kind": {"kind": "encoder-decoder"}, "family": {"family": "clearhead"},
    "head": {"head": "none"}, "vocab": {"vocab": 300}, "context": {"context": 11},
    "model": {"model": 24}, "layers": {"layers": 3}, "encoder_layers": {"encoder_layers": 1},
    "heads": {"heads": 4}, "kv_heads": {"kv_heads": 1}, "key_dim": {"key_dim": 6},
    "value_dim": {"value_dim": 10}, "feed_forward": {"feed_forward": 20}, "labels": {"labels": 3},
    "label_names": {"label_names": ["a"]}, "classifier": {"classifier": "relu"},
    "segments": {"segments": 2}, "positions": {"positions": "alibi"},
    "position_offset": {"position_offset": 2}, "rotary_width": {"rotary_width": 4},
    "rotary_base": {"rotary_base": 500.0},
    "rotary_scaling": {"rotary_scaling": {"kind": "linear", "factor": 2.0}},
    "window_rotary_base": {"window_rotary_base": 500.0, "window": 5},
    "relative_buckets": {"relative_buckets": 16, "positions": "relative"},
    "relative_distance": {
        "relative_distance": 7, "relative_buckets": 8, "positions": "relative",
    },
    "attention_bias": {"attention_bias": True},
    "attention_output_bias": {"attention_output_bias": True},
    "attention_scale": {"attention_scale": 0.5}, "attention_norm": {"attention_norm": False},
    "attention_softcap": {"attention_softcap": 0.5}, "sinks": {"sinks": True},
    "window": {"window": 3}, "window_layers": {"window_layers": [True, False], "window": 3},
    "activation": {"activation": "relu"}, "gated": {"gated": False},
    "feed_forward_bias": {"feed_forward_bias": True}, "norm": {"norm": "layer"},
    "norm_place": {"norm_place": "after"}, "norm_epsilon": {"norm_epsilon": 0.1},
    "norm_offset": {"norm_offset": True}, "embedding_norm": {"embedding_norm": True},
    "embedding_scale": {"embedding_scale": 3.0}, "embedding_unit": {"embedding_unit": False},
    "tied": {"tied": False}, "output_scale": {"output_scale": 0.5},
    "output_bias": {"output_bias": True}, "output_softcap": {"output_softcap": 0.5},
    "dropout": {"dropout": 0.5}, "bos": {"bos": 3}, "eos": {"eos": [3]}, "pad": {"pad": 3},
    "start": {"start": 3}, "shared_embedding": {"shared_embedding": False},
    "window_rotary_scaling": {
        "window_rotary_scaling": {"kind": "linear", "factor": 2.0}, "window_rotary_base": 500.0,
        "window": 5,
    },
    "attention_dropout": {"attention_dropout": 0.5},
    "embedding_dropout": {"embedding_dropout": 0.5},
    "activation_dropout": {"activation_dropout": 0.5}, "head_dropout": {"head_dropout": 0.5},
}  # fmt: skip


def footprint(task: Task) -> tuple[object, ...]:
    """All that a field can change: parameters, the first batch, its loss, the format.

    With random weights everywhere: what begins as zero would hide what it is multiplied by.
    """
    batch: Batch = task.batches.batch(0)
    names = sorted((name, tuple(p.shape)) for name, p in task.model.named_parameters())
    with seeded_for("footprint"), torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_(std=0.3)
        loss = float(objective_of(task.model.train())(batch))
    return names, batch.ids.tolist(), loss, task.model.config.family


def prepared(text: Path, **model: Any) -> Task:
    asked = {"model": model, "settings": SETTINGS}
    check_begin(asked)
    plan = Plan(texts=(str(text),), tokenizer="characters", model=SMALL | model, settings=SETTINGS)
    task, settings, _ = prepare(plan)
    check_used(asked, task.model.config, settings)
    return task


@pytest.mark.usefixtures("unchecked")
def test_every_field_of_the_model_changes_the_run_or_is_refused(text_file: Path) -> None:
    assert set(CHANGED) == MODEL_FIELDS, "a new field: say here what it becomes"
    plain, refused = footprint(prepared(text_file)), []
    for name, fields in CHANGED.items():
        others = {other: value for other, value in fields.items() if other != name}
        try:
            changed = footprint(prepared(text_file, **fields))
        except ClearheadError as error:
            assert name in error.message
            refused.append(name)
            continue
        base = footprint(prepared(text_file, **others)) if others else plain
        assert changed != base, f"{name} changes nothing and is not refused"
    assert refused == [
        "kind", "head", "vocab", "encoder_layers", "labels", "label_names", "classifier",
        "segments", "position_offset", "embedding_unit", "bos", "eos", "pad", "start",
        "shared_embedding", "head_dropout",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"rotary_base": 500.0, "positions": "alibi"}, "rotary_base changes nothing while posit"),
        ({"relative_buckets": 16}, "relative_buckets changes nothing while positions is rotary"),
        ({"window_layers": [True, False]}, "window_layers changes nothing without a window"),
        ({"family": "gpt2"}, "family gpt2 cannot express this model"),
    ],
)
def test_fields_that_would_change_nothing(
    model: dict[str, Any], message: str, text_file: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepared(text_file, **model)


# What a setting becomes, and what else it needs; None: it decides something else than numbers.
SETTINGS_CHANGED: dict[str, dict[str, Any] | None] = {
    "steps": {"steps": 5}, "minutes": {"minutes": 0.001, "steps": None},
    "patience": {"patience": 1, "validate_every": 1, "learning_rate": 9.0},
    "batch_tokens": {"batch_tokens": 64}, "row": {"row": 5}, "optimiser": {"optimiser": "adamw"},
    "learning_rate": {"learning_rate": 0.01},
    "matrix_learning_rate": {"matrix_learning_rate": 0.1}, "momentum": {"momentum": 0.5},
    "beta_1": {"beta_1": 0.5}, "beta_2": {"beta_2": 0.5}, "weight_decay": {"weight_decay": 1.0},
    "clip": {"clip": 0.01}, "warmup": {"warmup": 1, "steps": 8},
    "schedule": {"schedule": "inverse-square-root"},
    "cooldown": {"cooldown": 1.0}, "floor": {"floor": 1.0, "cooldown": 1.0},
    "label_smoothing": {"label_smoothing": 0.1}, "validate_every": {"validate_every": 2},
    "seed": {"seed": 3}, "precision": {"precision": "bfloat16"},
    "accumulation": None,  # how much memory a step takes; the result is the same
    "checkpoint_minutes": None,  # how much is lost by a power cut
    "freeze": {"freeze": "embeddings"}, "validation_tokens": {"validation_tokens": 16},
    **dict.fromkeys(("lora", "lora_alpha", "lora_dropout", "lora_targets")),  # see below
    "keep_every": None,  # which models are kept beside the result: test_saving.py
    "average": None,  # which checkpoints are kept and tried at the end: tested in test_loop.py
}  # fmt: skip


@pytest.mark.usefixtures("unchecked")
def test_every_setting_changes_the_run(text_file: Path) -> None:
    assert set(SETTINGS_CHANGED) == SETTING_FIELDS, "a new setting: say here what it becomes"
    base = {"steps": 4, "batch_tokens": 128, "validate_every": 4, "warmup": 2}

    def losses(**changes: Any) -> list[tuple[int, float]]:
        settings = base | changes
        plan = Plan(texts=(str(text_file),), tokenizer="characters", model=SMALL, settings=settings)
        task, made, _ = prepare(plan)
        check_used({"settings": changes}, task.model.config, made)
        events = train_task(dataclasses.replace(task, sample=None), made)
        return [(e.step, e.loss) for e in events if isinstance(e, Stepped | Validated)]

    plain = losses()
    for name, fields in SETTINGS_CHANGED.items():
        if fields is None:
            continue
        others = {other: v for other, v in fields.items() if other != name and name != "minutes"}
        assert losses(**fields) != (losses(**others) if others else plain), f"{name} is ignored"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "changes", [{"row": 5}, {"validation_tokens": 9}, {"label_smoothing": 0.2}, {"seed": 8}]
)
def test_settings_of_batches_change_pairs_too_or_are_refused(changes: dict[str, Any]) -> None:
    pairs = [(f"{n} is {n % 7} {n % 3}", f"{n % 5} makes {n}") for n in range(240)]
    model: dict[str, Any] = SMALL | {"layers": 1, "context": 40}

    def losses(**changes: Any) -> list[float]:
        settings = {"steps": 2, "batch_tokens": 128, "validate_every": 1} | changes
        plan = Plan(texts=("x",), pairs=True, tokenizer="characters", model=model,
                    settings=settings)  # fmt: skip
        task, made, _ = prepare(plan, content={"texts": pairs})
        check_used({"settings": changes}, task.model.config, made)
        events = train_task(dataclasses.replace(task, sample=None), made)
        return [event.loss for event in events if isinstance(event, Stepped | Validated)]

    try:
        assert losses(**changes) != losses(), f"{changes} is ignored"
    except ConfigError as error:
        assert "row changes nothing beside pairs" in error.message and "row" in changes


def test_every_setting_of_adapters_changes_the_run(text_file: Path, tmp_path: Path) -> None:
    ch.save(fresh_model(language_config("tiny", 60, **SMALL), 3), tmp_path / "start",
            CharacterTokenizer.from_texts([text_file.read_text()]))  # fmt: skip

    def losses(**changes: Any) -> list[float]:
        settings = {"steps": 3, "batch_tokens": 128, "learning_rate": 0.1, "warmup": 0} | changes
        plan = Plan(texts=(str(text_file),), start_from=str(tmp_path / "start"), settings=settings)
        task, made, _ = prepare(plan)
        events = train_task(dataclasses.replace(task, sample=None), made)
        return [event.loss for event in events if isinstance(event, Stepped)]

    plain = losses(lora=2)
    others: list[dict[str, Any]] = [
        {"lora": None}, {"lora": 3}, {"lora_alpha": 9.0}, {"lora_dropout": 0.5},
        {"lora_targets": "query"},
    ]  # fmt: skip
    for other in others:
        assert losses(**{"lora": 2} | other) != plain, f"{other} is ignored"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lora_alpha": 3.0}, "lora_alpha changes nothing without lora"),
        ({"lora_targets": "query"}, "lora_targets changes nothing without lora"),
        ({"lora_dropout": 0.5}, "lora_dropout changes nothing without lora"),
        ({"lora": 2, "freeze": "embeddings"}, "freeze changes nothing beside lora"),
        ({"momentum": 0.5, "optimiser": "adamw"}, "momentum changes nothing while optimiser is ad"),
        ({"matrix_learning_rate": 0.5, "optimiser": "adamw"}, "matrix_learning_rate changes noth"),
        ({"cooldown": 0.5, "schedule": "cosine"}, "cooldown changes nothing while schedule is cos"),
        ({"floor": 0.5, "schedule": "inverse-square-root"}, "floor changes nothing while schedule"),
    ],
)
def test_settings_that_would_change_nothing(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_used({"settings": fields}, CONFIG, TrainingSettings(steps=3, **fields))


def test_what_may_be_asked_of_a_run_that_has_begun() -> None:
    assert resumed({}, BEGUN, FIELDS) == BEGUN
    same = {"texts": ("/a.txt",), "size": "small", "model": {"layers": 3, "heads": CONFIG.heads},
            "settings": {"seed": 5, "clip": 1.0}}  # fmt: skip
    assert resumed(same, BEGUN, FIELDS) == BEGUN
    longer = resumed({"settings": {"steps": 11}}, BEGUN, FIELDS)
    assert (longer.settings["steps"], longer.settings["minutes"]) == (11, None)
    minutes = resumed({"settings": {"minutes": 2.0}}, BEGUN, FIELDS)
    assert (minutes.settings["steps"], minutes.settings["minutes"]) == (None, 2.0)
    often = resumed({"settings": {"checkpoint_minutes": 1.0}}, BEGUN, FIELDS)
    assert (often.settings["steps"], often.settings["checkpoint_minutes"]) == (7, 1.0)


OTHERS: dict[str, Any] = {
    "texts": ("/b.txt",), "pairs": True, "validation": ("/c.txt",), "size": "tiny",
    "tokenizer": "characters", "vocabulary": 300, "start_from": "smollm2", "chats": True,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_argument_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"begun with other {name}: .*, not ") as error:
        resumed({name: OTHERS[name]}, BEGUN, FIELDS)
    assert error.value.hint is not None and f"leave {name} out" in error.value.hint


@pytest.mark.parametrize(
    "name", sorted(SETTING_FIELDS - {"steps", "minutes", "checkpoint_minutes"})
)
def test_every_other_setting_is_refused(name: str) -> None:
    other = "other" if isinstance(BEGUN.settings[name], str) else 0.123
    with pytest.raises(InputError, match=f"begun with other {name}: "):
        resumed({"settings": {name: other}}, BEGUN, FIELDS)


@pytest.mark.parametrize("name", sorted(MODEL_FIELDS))
def test_every_other_field_of_the_model_is_refused(name: str) -> None:
    resumed({"model": {name: FIELDS[name]}}, BEGUN, FIELDS)
    with pytest.raises(InputError, match=f"begun with other {name}: "):
        resumed({"model": {name: "other"}}, BEGUN, FIELDS)


@pytest.mark.parametrize("name", ["size", "tokenizer", "vocabulary"])
def test_a_run_that_trains_a_model_further_has_no_size(name: str) -> None:
    further = dataclasses.replace(BEGUN, start_from="smollm2")
    with pytest.raises(InputError, match=f"begun with other {name}: 'that of smollm2'"):
        resumed({name: getattr(BEGUN, name) or 300}, further, FIELDS)
