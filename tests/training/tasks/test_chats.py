"""Training a chat model further: only answers are learned; the run is complete in itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.text.subwords.training import train_bpe
from clearhead.training.events import Finished, Stepped, Warned
from clearhead.training.initialisation import fresh_model
from clearhead.training.sizes import language_config
from clearhead.training.tasks.chats import held_out_chats
from tests.training.data.test_chats import CHATML, WORDS, made_chat

CHATS = [made_chat(seed) for seed in range(30)]
GIVEN: dict[str, Any] = {"steps": 3, "settings": {"batch_tokens": 128, "validate_every": 2}}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = train_bpe([" ".join(WORDS) * 30], 320)
    tokenizer.chat_template = CHATML
    assert tokenizer.specials.eos is not None
    config = language_config("tiny", tokenizer.size, model=12, layers=1, heads=2, feed_forward=10,
                             context=64, eos=(tokenizer.specials.eos,))  # fmt: skip
    return ch.save(fresh_model(config, 3), tmp_path_factory.mktemp("chat") / "model", tokenizer)


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_of_chats(start: Path, tmp_path: Path, lora: int | None) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in CHATS))
    given = [list(ch.train(texts, out=tmp_path / name, start_from=start, chats=True, lora=lora,
                           **GIVEN))
             for name, texts in (("files", [path]), ("lists", CHATS))]  # fmt: skip
    one, other = ([event.loss for event in events if isinstance(event, Stepped)]
                  for events in given)  # fmt: skip
    assert one == other and len(one) == 3
    loaded = ch.load(tmp_path / "lists")
    assert loaded.tokenizer is not None and loaded.tokenizer.chat_template == CHATML
    path.unlink()  # the run has its chats
    for name in ("lists", "files"):
        more = list(ch.train(out=tmp_path / name, resume=True, steps=5))
        assert isinstance(more[-1], Finished) and more[-1].step == 5


def test_rows_shorter_than_chats_are_told(start: Path, tmp_path: Path) -> None:
    events = list(ch.train(CHATS, out=tmp_path / "run", start_from=start, chats=True, steps=1,
                           settings={"row": 11, "batch_tokens": 64}))  # fmt: skip
    (warned,) = [event for event in events if isinstance(event, Warned)]
    assert "chats are longer than a row of 11 tokens" in warned.message


def test_the_split() -> None:
    training, validation = held_out_chats([*CHATS, *CHATS], 0.2, 3)
    assert len(training) + len(validation) == 60 and len(validation) == 12
    assert not [chat for chat in validation if chat in training]
    with pytest.raises(InputError, match="at least two different chats"):
        held_out_chats([CHATS[0], CHATS[0]], 0.2, 3)


def test_what_chats_need(tmp_path: Path, start: Path) -> None:
    with pytest.raises(InputError, match="train a model further"):
        ch.train(CHATS, out=tmp_path / "run", chats=True, steps=1)
    with pytest.raises(InputError, match="encoder-decoder"):
        list(ch.train(CHATS, out=tmp_path / "run", chats=True, steps=1, start_from="dates"))
