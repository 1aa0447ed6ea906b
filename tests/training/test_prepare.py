"""From a plan to a run: what comes of texts, pairs, sizes and models to continue from."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import clearhead as ch
from clearhead.errors import InputError
from clearhead.training.events import Finished, Started, Validated, Warned
from clearhead.training.loop import train_task
from clearhead.training.plan import Plan
from clearhead.training.prepare import check_buildable, prepare
from clearhead.training.run import train
from clearhead.training.run_folder import RunFolder
from clearhead.training.sizes import language_config

SMALL = {"model": 12, "layers": 1, "heads": 2, "feed_forward": 20}
SETTINGS = {"steps": 3, "batch_tokens": 400, "validate_every": 3, "warmup": 1}


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("".join(f"turn {n} around\t{str(n)[::-1]}\n" for n in range(100, 300)))
    return path


def test_transformers_opens_a_language_model(text_file: Path, tmp_path: Path) -> None:
    plan = Plan(texts=(str(text_file),), vocabulary=300, model=SMALL, settings=SETTINGS)
    task, settings, _ = prepare(plan)
    events = list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    assert isinstance(events[-1], Finished)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "run")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run")
    loaded = ch.load(tmp_path / "run")
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode("the quick brown")
    assert tokenizer("the quick brown")["input_ids"] == ids
    with torch.no_grad():
        torch.testing.assert_close(
            theirs(torch.tensor([ids])).logits, loaded.model(torch.tensor([ids])), atol=1e-4, rtol=0
        )


@pytest.mark.parametrize("validation", [False, True])
def test_pairs_are_kept_in_the_run_folder(
    pairs_file: Path, tmp_path: Path, validation: bool
) -> None:
    source, other = tmp_path / "pairs.tsv", tmp_path / "others.tsv"
    shutil.copyfile(pairs_file, source)
    other.write_text("".join(f"turn {n} around\t{str(n)[::-1]}\n" for n in range(299, 310)))
    given: dict[str, Any] = {"validation": other} if validation else {}
    fields: dict[str, Any] = {"vocabulary": 280, "model": SMALL, "settings": SETTINGS}
    events = list(train(source, pairs=True, out=tmp_path / "run", **fields, **given))
    started = next(event for event in events if isinstance(event, Started))
    assert started.held_out == ("" if validation else "20 of 200 pairs")
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert [text[:36] for text in warned] == ["1 of 11 pairs to validate on are lea"] * validation
    again = list(train(source, out=tmp_path / "run", resume=True, **given))
    assert isinstance(again[-1], Finished)
    source.unlink()
    other.unlink()
    (tmp_path / "run").rename(tmp_path / "moved")
    longer = list(train(out=tmp_path / "moved", resume=True, settings={"steps": 5}))
    assert isinstance(longer[-1], Finished) and longer[-1].step == 5


def test_transformers_opens_a_translator(pairs_file: Path, tmp_path: Path) -> None:
    model = SMALL | {"encoder_layers": 2}
    plan = Plan(
        texts=(str(pairs_file),), pairs=True, vocabulary=280, model=model, settings=SETTINGS
    )
    task, settings, _ = prepare(plan)
    list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    loaded = ch.load(tmp_path / "run")
    assert loaded.tokenizer is not None
    source = torch.tensor([loaded.tokenizer.encode("turn 123 around")])
    target = torch.tensor([[1, 5, 6, 7]])
    with torch.no_grad():
        torch.testing.assert_close(
            theirs(input_ids=source, decoder_input_ids=target).logits,
            loaded.model(source, target), atol=1e-4, rtol=0,
        )  # fmt: skip


def test_many_documents_learn_their_beginning_and_end() -> None:
    task, _, _ = prepare(Plan(vocabulary=400, model=SMALL, settings=SETTINGS))
    assert task.tokenizer is not None and task.model.config.bos == task.tokenizer.specials.bos
    ids = torch.cat([task.batches.batch(n).ids.flatten() for n in range(20)])
    assert {task.tokenizer.specials.bos, task.tokenizer.specials.eos} <= set(ids.tolist())


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"batch_tokens": 400}, (1, 400)),  # the context is longer than a batch
        ({"batch_tokens": 400, "row": 50}, (8, 50)),
        ({"batch_tokens": 30, "row": 50}, (1, 50)),
        ({"batch_tokens": 5000}, (7, 640)),
    ],
)
def test_rows_follow_from_row_context_and_batch(
    text_file: Path, settings: dict[str, int], rows: tuple[int, int]
) -> None:
    plan = Plan(texts=(str(text_file),), tokenizer="characters", model=SMALL | {"context": 640},
                settings=SETTINGS | settings)  # fmt: skip
    task, _, _ = prepare(plan)
    assert task.tokens[0] > 7 * 640
    assert task.batches.batch(0).ids.shape == rows
    assert sum(batch.tokens for batch in task.validation) == task.tokens[1] - 1


def test_a_row_is_not_longer_than_the_context(text_file: Path) -> None:
    plan = Plan(texts=(str(text_file),), tokenizer="characters", model=SMALL | {"context": 64},
                settings=SETTINGS | {"row": 65})  # fmt: skip
    with pytest.raises(InputError, match="a row of 65 tokens is longer than the model's context"):
        prepare(plan)


def test_continuing_from_a_model(text_file: Path, tmp_path: Path) -> None:
    first = Plan(texts=(str(text_file),), vocabulary=280, model=SMALL, settings=SETTINGS)
    task, settings, _ = prepare(first)
    list(train_task(task, settings, folder=RunFolder(tmp_path / "run")))
    more = Plan(texts=(str(text_file),), start_from=str(tmp_path / "run"), settings=SETTINGS)
    again, settings, _ = prepare(more)
    kept = ch.load(tmp_path / "run").model.state_dict()
    for name, tensor in again.model.state_dict().items():
        assert torch.equal(tensor, kept[name])
    assert isinstance(list(train_task(again, settings))[-1], Finished)


def test_other_data_is_another_run(text_file: Path, tmp_path: Path) -> None:
    plan = Plan(texts=(str(text_file),), tokenizer="characters", model=SMALL, settings=SETTINGS)
    fingerprint = prepare(plan)[2]
    same = dataclasses.replace(plan, fingerprint=fingerprint)
    assert prepare(same)[2] == fingerprint
    other = tmp_path / "other.txt"
    other.write_text(text_file.read_text() + " more")
    with pytest.raises(InputError, match="not those that the run began with"):
        prepare(dataclasses.replace(same, texts=(str(other),)))


def test_what_does_not_fit(text_file: Path, pairs_file: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.txt"
    small.write_text("a few words")
    with pytest.raises(InputError, match="larger than the data"):
        prepare(Plan(texts=(str(small),), validation=(str(text_file),), tokenizer="characters",
                     settings=SETTINGS))  # fmt: skip
    with pytest.raises(InputError, match="pairs train an encoder-decoder"):
        prepare(Plan(texts=(str(pairs_file),), pairs=True, start_from=str(_decoder(tmp_path)),
                     settings=SETTINGS))  # fmt: skip
    with pytest.raises(InputError, match=r"the longest text has .* and the context holds 3"):
        prepare(Plan(texts=(str(pairs_file),), pairs=True, tokenizer="characters",
                     model={"context": 3}, settings=SETTINGS))  # fmt: skip


def _decoder(folder: Path) -> Path:
    from clearhead.text import CharacterTokenizer

    model = ch.Decoder(language_config("tiny", 11, **SMALL))
    return ch.save(model, folder / "decoder", CharacterTokenizer("abcdefg"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": 10_001}, "layers must be 10,000 or less; got 10001"),
        ({"layers": 90, "feed_forward": 2**24}, "does not fit into the memory of this machine"),
        ({"value_dim": 2**20, "heads": 2**10, "key_dim": 2}, "does not fit into the memory of thi"),
        ({"feed_forward": 2**40}, "feed_forward must be 16,777,216 or less"),
    ],
)
def test_models_that_no_machine_can_build(fields: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_buildable(language_config("tiny", 11, **fields))


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_is_complete_in_itself(
    tmp_path: Path, lora: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming needs neither the model that the run began with nor its tokenizer."""
    start = _decoder(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("abcdefgabcfedgab" * 40)
    given: dict[str, Any] = {"out": tmp_path / "run", "device": "cpu"}
    settings = {"batch_tokens": 100, "warmup": 1, "validate_every": 2}
    monkeypatch.chdir(tmp_path)
    list(train(text, start_from=start.name, steps=2, settings=settings, lora=lora, **given))
    shutil.rmtree(start)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    last = list(train(resume=True, steps=4, **given))[-1]
    assert isinstance(last, Finished) and last.step == 4
    assert ch.load(tmp_path / "run").config.layers == 1


def test_the_start_competes_with_the_result(tmp_path: Path) -> None:
    """Training that only makes it worse gives back the model as it was, and tells so."""
    start = _decoder(tmp_path)
    settings = {"batch_tokens": 100, "learning_rate": 50.0, "validate_every": 2, "warmup": 0}
    events = list(train(["abcdefgabcfedgab" * 40], out=tmp_path / "run", start_from=start, steps=4,
                        settings=settings))  # fmt: skip
    validated = [event for event in events if isinstance(event, Validated)]
    assert [event.step for event in validated] == [0, 2, 4]
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.weights == "step 0"
    assert finished.loss == validated[0].loss < validated[1].loss
    kept = ch.load(start).model.state_dict()
    for name, tensor in ch.load(tmp_path / "run").model.state_dict().items():
        assert torch.equal(tensor, kept[name])


def test_dropout_survives_saving_loading_and_going_on(tmp_path: Path) -> None:
    start, texts = _decoder(tmp_path), ["abcdefgabcfedgab" * 40]
    wanted = {"dropout": 0.25, "attention_dropout": 0.125, "activation_dropout": 0.5}
    given: dict[str, Any] = {"steps": 1, "settings": {"batch_tokens": 100}}
    list(train(texts, out=tmp_path / "one", start_from=start, model=wanted, **given))
    list(train(texts, out=tmp_path / "two", start_from=tmp_path / "one", **given))
    list(train(out=tmp_path / "two", resume=True, steps=2))
    for folder in ("one", "two"):
        config = ch.load(tmp_path / folder).config
        assert {name: getattr(config, name) for name in wanted} == wanted
