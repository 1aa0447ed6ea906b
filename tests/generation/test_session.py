"""Sessions: what is known is not run again, and the text does not change by it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.generate import generate
from clearhead.generation.session import Session, common_prefix
from clearhead.generation.torch_runner import TorchRunner
from tests.shared.tiny_models import token_ids

OPTIONS: dict[str, Any] = {"temperature": 0, "max_tokens": 9}


def ids_of(model: Loaded | Session, prompt: list[int], **options: Any) -> list[int]:
    events = generate(model, prompt, **OPTIONS | options)
    return [event.token for event in events if event.token is not None]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each step of the model ran."""
    counted: list[int] = []
    plain = TorchRunner._logits

    def logits(self: TorchRunner, ids: Any, *rest: Any, **more: Any) -> Any:
        counted.append(ids.shape[1])
        return plain(self, ids, *rest, **more)

    monkeypatch.setattr(TorchRunner, "_logits", logits)
    return counted


def test_common_beginning() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common_prefix([1, 2], [1, 2, 4, 5]) == 2
    assert common_prefix([], [1]) == common_prefix([3], [1]) == 0


def test_only_what_is_new_is_run(tiny: Any, runs: list[int]) -> None:
    loaded = tiny("llama").loaded
    session = Session(loaded, engine=False)
    prompt = token_ids(23).tolist()
    answer = ids_of(session, prompt)
    assert session.cached_ids == prompt + answer[:-1]  # nobody needed what comes after the last one
    runs.clear()
    longer = [*prompt, *answer, 7, 8]
    got = ids_of(session, longer)
    assert runs[0] == 3
    assert got == ids_of(loaded, longer, engine=False)
    runs.clear()
    other = [*prompt[:11], 5, 6, 7]
    got = ids_of(session, other)
    assert runs[0] == 3
    assert got == ids_of(loaded, other, engine=False)
    runs.clear()
    assert ids_of(session, other) == got
    assert runs[0] == 1  # the same again: only the last token, for the logits after it


def test_sources_are_read_once(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny("t5").loaded
    session, source = Session(loaded, engine=False), token_ids(13).tolist()
    first = ids_of(session, source)
    encoded: list[Any] = []
    monkeypatch.setattr(type(loaded.model), "encode", lambda *a, **k: encoded.append(a))
    assert ids_of(session, source) == first
    assert not encoded
    monkeypatch.undo()
    assert ids_of(session, source[:5]) == ids_of(loaded, source[:5])


def test_reset(tiny: Any, runs: list[int]) -> None:
    session = Session(tiny("gpt2").loaded, engine=False)
    first = ids_of(session, [5, 6, 7, 8])
    session.reset()
    assert session.cached_ids == []
    runs.clear()
    assert ids_of(session, [5, 6, 7, 8]) == first
    assert runs[0] == 4


def test_an_abandoned_stream_leaves_the_session_usable(tiny: Any) -> None:
    loaded = tiny("llama").loaded
    session, prompt = Session(loaded, engine=False), token_ids(11).tolist()
    wanted = ids_of(loaded, prompt)
    stream = generate(session, prompt, **OPTIONS)
    got = [next(stream).token for _ in range(3)]
    stream.close()
    assert got == wanted[:3]
    assert ids_of(session, prompt) == wanted


def test_an_interrupted_step_is_not_trusted(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny("llama").loaded
    session, prompt = Session(loaded, engine=False), token_ids(11).tolist()
    stream = generate(session, prompt, **OPTIONS)
    next(stream)
    head = loaded.model.head
    monkeypatch.setattr(head, "forward", _interrupt)  # after all layers have got the new token
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    monkeypatch.undo()
    assert session.cached_ids == []
    assert ids_of(session, prompt) == ids_of(loaded, prompt)


def _interrupt(*_: object) -> torch.Tensor:
    raise KeyboardInterrupt


def test_a_newer_stream_ends_the_older_one(tiny: Any) -> None:
    loaded = tiny("llama").loaded
    session, prompt = Session(loaded, engine=False), token_ids(11).tolist()
    older = generate(session, prompt, **OPTIONS)
    next(older)
    assert ids_of(session, prompt[:5]) == ids_of(loaded, prompt[:5])
    with pytest.raises(InputError, match="a newer one was started on the same session"):
        list(older)


def test_batches_do_not_touch_the_memory(tiny: Any) -> None:
    loaded = tiny("llama").loaded
    session = Session(loaded, engine=False)
    ids_of(session, [5, 6, 7])
    held = session.cached_ids
    events = list(generate(session, [[5, 6], [7, 8, 9]], **OPTIONS))
    assert [e.token for e in events if e.row == 1 and e.token is not None] == ids_of(
        loaded, [7, 8, 9]
    )
    assert session.cached_ids == held
