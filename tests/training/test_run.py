"""``train``: one function from texts to a folder that opens."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from torch import distributed

import clearhead as ch
from clearhead.errors import ConfigError, InputError
from clearhead.training.events import Event, Finished, Started, Stepped, Validated
from clearhead.training.run import train
from clearhead.training.settings import TrainingSettings

MODEL = {"model": 12, "layers": 1, "heads": 2, "feed_forward": 20, "context": 16}
SETTINGS = {"batch_tokens": 300, "validate_every": 3, "warmup": 1}
FOX = "the quick brown fox jumps over the lazy dog. "
TEXTS = [FOX * 7, "and some more of it. " * 11]
PAIRS = [(f"number {n}", str(n)[::-1]) for n in range(60)]


def options(out: Path, **changes: Any) -> dict[str, Any]:
    fixed = {"out": out, "tokenizer": "characters", "device": "cpu", "steps": 7}
    return fixed | {"model": MODEL, "settings": SETTINGS} | changes


def losses(events: list[Event]) -> list[float]:
    return [event.loss for event in events if isinstance(event, Stepped | Validated)]


def test_texts_to_a_folder_that_opens(tmp_path: Path) -> None:
    events = list(train(TEXTS, **options(tmp_path / "run")))
    started, finished = events[0], events[-1]
    assert isinstance(started, Started) and started.config.model == 12
    assert isinstance(finished, Finished) and finished.folder == tmp_path / "run"
    assert ch.load(finished.folder).config.layers == 1


def test_strings_and_files_are_the_same_run(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    paths = [tmp_path / "texts" / name for name in ("a.txt", "b.txt")]
    for path, text in zip(paths, TEXTS, strict=True):
        path.write_text(text)
    runs: dict[str, Any] = {"strings": TEXTS, "files": paths, "folder": str(tmp_path / "texts")}
    found = [losses(list(train(texts, **options(tmp_path / name)))) for name, texts in runs.items()]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        (TEXTS, {"validation": [FOX]}),
        (PAIRS, {"pairs": True, "model": MODEL | {"encoder_layers": 1}, "validation": PAIRS[:5]}),
    ],
)
def test_a_run_on_strings_continues_bit_for_bit(
    texts: Any, changes: dict[str, Any], tmp_path: Path
) -> None:
    whole = losses(list(train(texts, **options(tmp_path / "whole", **changes))))
    for event in train(texts, **options(tmp_path / "cut", **changes)):
        if isinstance(event, Stepped) and event.step == 5:
            break
    rest = losses(list(train(out=tmp_path / "cut", resume=True, device="cpu")))
    assert rest == whole[4:]  # after step 3 and its validation
    again = train(texts, **options(tmp_path / "cut", **changes), resume=True)
    assert isinstance(list(again)[-1], Finished)  # the same arguments may be given again


def test_resuming_with_other_values_is_refused(tmp_path: Path) -> None:
    list(train(TEXTS, **options(tmp_path / "run", seed=3)))
    resumed: dict[str, Any] = {"out": tmp_path / "run", "resume": True, "device": "cpu"}
    with pytest.raises(InputError, match="begun with other size: 'tiny', not 'small'"):
        train(**resumed, size="small")
    with pytest.raises(InputError, match=r"begun with other clip: 1.0, not 0.5"):
        train(**resumed, settings={"clip": 0.5})
    with pytest.raises(InputError, match="begun with other pairs"):
        train(PAIRS, **resumed, pairs=True)
    with pytest.raises(InputError, match="not those that the run began with"):
        list(train([*TEXTS, FOX], **resumed))
    with pytest.raises(InputError, match="no run to resume"):
        train(out=tmp_path / "other", resume=True)


def test_defaults(tmp_path: Path) -> None:
    events = train(PAIRS, pairs=True, out=tmp_path / "run", device="cpu", vocabulary=270)
    next(events)
    events.close()
    plan = json.loads((tmp_path / "run" / "training" / "run.json").read_text())["plan"]
    wanted = {"seed": 0, "label_smoothing": 0.1, "minutes": 1.5, "steps": None}
    assert plan["settings"] == dataclasses.asdict(TrainingSettings(minutes=1.5)) | wanted
    assert plan["texts"] == ["texts.jsonl"]


def test_nothing_is_left_by_a_run_that_cannot_begin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"size must be one of .* got 'huge'"):
        list(train(TEXTS, out=tmp_path / "run", size="huge", device="cpu"))
    assert not (tmp_path / "run").exists()


def test_what_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(InputError, match="not both; got steps=3 and minutes=1"):
        train(TEXTS, out=out, steps=3, minutes=1)
    with pytest.raises(InputError, match="steps is given twice"):
        train(TEXTS, out=out, steps=3, settings={"steps": 5})
    with pytest.raises(ConfigError, match="settings has no field layers") as error:
        train(TEXTS, out=out, settings={"layers": 3})
    assert error.value.hint == "it belongs into model."
    with pytest.raises(ConfigError, match="model has no field colour"):
        train(TEXTS, out=out, model={"colour": 3})
    with pytest.raises(InputError, match="there is no device 'toaster'"):
        train(TEXTS, out=out, device="toaster")
    with pytest.raises(InputError, match="pairs come from two files"):
        train(out=out, pairs=True)
    (tmp_path / "letter.txt").write_text("dear …")
    with pytest.raises(InputError, match="is not empty"):
        next(train(TEXTS, out=tmp_path))


def test_leaving_early_closes_the_process_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    group = "clearhead.training.processes.group"
    store = distributed.HashStore()  # type: ignore[attr-defined]
    monkeypatch.setattr(f"{group}.rendezvous", lambda *_, **__: iter([(store, 0, 2)]))
    monkeypatch.setattr(distributed, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: closed.append(True))
    monkeypatch.setattr(
        "clearhead.training.run.train_task", lambda *_, **__: iter([Started, Stepped])
    )
    monkeypatch.setattr(f"{group}.Processes.sum", lambda _, *values: list(values))
    events = train(TEXTS, **options(tmp_path / "run"))
    next(events)
    assert not closed
    events.close()
    assert closed == [True]
