"""The decoding loop: order of events, reasons to finish, rows that leave the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.generation import decoding_loop
from clearhead.generation.decoding_loop import DecodingLoop
from clearhead.generation.event import Event
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.session import Session
from clearhead.generation.settings import Settings
from clearhead.generation.token_sampler import TokenSampler
from clearhead.generation.torch_runner import TorchRunner

Script = Callable[[Sequence[int]], Loaded]


def events(
    loaded: Loaded,
    prompt: list[int] | list[list[int]],
    *,
    max_tokens: int = 7,
    samples: int = 1,
    stops: tuple[str, ...] = (),
) -> list[Event]:
    prompts = PromptBatch.of(loaded, prompt)
    sampler = TokenSampler(Settings(temperature=0), loaded.tokenizer)
    loop = DecodingLoop(Session(loaded, engine=False), prompts, sampler, loaded.config.eos)
    return list(
        loop.events(prompts.rows(loaded, samples, stops, 0, [max_tokens] * len(prompts.ids)))
    )


def test_a_token_ends_the_text(script: Script) -> None:
    found = events(script([9, 10, 2, 11]), [5])
    assert [event.token for event in found] == [9, 10, 2, None]
    assert [event.finish for event in found] == [None, None, None, "stop-token"]


def test_the_reason_to_finish(script: Script, wordy: Loaded) -> None:
    assert wordy.tokenizer is not None
    door = wordy.tokenizer.encode("door", special=False)
    assert events(script([9] * 9), [5], max_tokens=3)[-1].finish == "max-tokens"
    assert events(script([*door, 9, 9]), [5], stops=("door",))[-1].finish == "stop-string"
    full = events(script([9] * 9), [5] * 59)
    assert full[-1].finish == "context"
    assert len(full) == 4  # the third token does not fit any more


def test_finished_rows_leave_the_batch_and_prompts_run_once(
    wordy: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    plain = TorchRunner.extend

    def extend(self: TorchRunner, rows: list[list[int]]) -> object:
        sizes.append(len(rows))
        return plain(self, rows)

    monkeypatch.setattr(TorchRunner, "extend", extend)
    monkeypatch.setattr(
        decoding_loop, "make_runner", lambda loaded, _, sources: TorchRunner(loaded.model, sources)
    )
    found = events(wordy, [[5] * 60, [7]], samples=2, max_tokens=4)  # the first has space for two
    assert sizes == [2, 4, 2, 2]
    ends = {(event.row, event.sample): event.finish for event in found if event.finish}
    assert [ends[0, 0], ends[0, 1]] == ["context", "context"]
    assert ends[1, 0] == ends[1, 1]
